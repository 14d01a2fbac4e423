# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes of this host, for notebooks, tests and trying things out.

They are forked: then functions of a notebook, lambdas and closures work, arrays that exist already
need no copy, and nothing is imported again. What fork does not carry over are threads: a parent
that has computed with torch's OpenMP threads should pass ``start="spawn"``, for which the function
must be importable. A parent's communicators are not usable in the ranks either way.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, wait
from numbers import Real
from typing import Any

from ._arguments import whole
from .communicator import Communicator, Settings, config_of, unique_id
from .errors import Error, misuse, refuse


class RankError(RuntimeError):
    """A rank of run() failed: `rank` says which, ``__cause__`` is its exception.

    `errors` has those of all ranks that failed; of one that died, a RankError without a cause.
    """

    def __init__(
        self, rank: int, text: str, errors: dict[int, BaseException] | None = None
    ) -> None:
        super().__init__(text)
        self.rank = rank
        self.errors = errors or {}

    def __reduce__(self) -> tuple:
        return type(self), (self.rank, str(self), self.errors)


def run(
    fn: Callable[..., Any],
    ranks: int = 2,
    args: Iterable[Any] = (),
    *,
    start: str = "fork",
    timeout: float | None = None,
    grace: float = 10.0,
    settings: Settings | None = None,
) -> list[Any]:
    """Calls ``fn(comm, *args)`` in `ranks` new processes and returns what they return, by rank.

    The first exception of a rank is raised as RankError, and so is the death of one. The others
    then have `grace` seconds to end before they are killed; weft tells them of it. After `timeout`
    seconds all are killed. `settings` configure the communicator.

    >>> import weft
    >>> weft.run(lambda comm: comm.rank * 10, ranks=3)
    [0, 10, 20]
    """
    ranks = whole("run", "ranks", ranks)
    if ranks < 1:
        misuse("run", f"{ranks} ranks", "ask for 1 or more")
    _check(fn, args, start, {"grace": grace} | ({} if timeout is None else {"timeout": timeout}))
    config_of("run", settings or {})  # what is wrong with them is said once, not by each rank
    world = _World(fn, ranks, tuple(args), start, settings or {})
    try:
        world.watch(timeout, grace)
    finally:
        world.end()
    return world.values()


def _check(fn: Any, args: Any, start: Any, seconds: dict[str, Any]) -> None:
    if not callable(fn):
        refuse("run", f"fn is {fn!r}", "pass a function, which is called with (comm, *args)")
    if not isinstance(args, Iterable) or isinstance(args, (str, bytes)):
        refuse("run", f"args is {args!r}", "pass a tuple of what fn takes after comm")
    ways = multiprocessing.get_all_start_methods()
    if start not in ways:
        refuse("run", f"start is {start!r}", f"one of {', '.join(ways)}")
    for name, value in seconds.items():
        if not isinstance(value, Real) or not value >= 0:
            refuse("run", f"{name} is {value!r}", "pass seconds, from 0 on")


class _World:
    """The processes, and what they have said so far."""

    def __init__(self, fn: Any, ranks: int, args: tuple, start: str, settings: Settings) -> None:
        context: Any = multiprocessing.get_context(start)
        self.pipes: list[Connection] = []
        self.processes: list[Any] = []
        self.answers: dict[int, tuple[str, Any]] = {}
        for rank in range(ranks):
            mine, theirs = context.Pipe()
            inherited = [*self.pipes, mine] if start == "fork" else []
            work = (fn, rank, ranks, args, theirs, inherited, settings)
            process = context.Process(target=_rank, args=work, name=f"rank {rank}", daemon=True)
            self.pipes.append(mine)
            self.processes.append(process)
            process.start()
            theirs.close()

    def watch(self, timeout: float | None, grace: float) -> None:
        """Until all have answered or died, or time is up."""
        end = None if timeout is None else time.monotonic() + timeout
        why = f"no answer within {timeout} s"
        while len(self.answers) < len(self.processes):
            open_pipes = [p for r, p in enumerate(self.pipes) if r not in self.answers]
            left = None if end is None else max(0.0, end - time.monotonic())
            ready = wait(open_pipes, left)
            if not ready:
                return self._give_up(why)
            failed = [self._hear(self.pipes.index(pipe)) for pipe in ready]  # type: ignore[arg-type]
            soon = time.monotonic() + grace
            if any(failed) and (end is None or soon < end):
                end, why = soon, f"no answer within {grace:g} s of another rank's failure"

    def end(self) -> None:
        """Lets those that have answered go, and kills the others."""
        for rank, process in enumerate(self.processes):
            if rank not in self.answers or self.answers[rank][0] == "late":
                process.kill()
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join(2)
            if process.is_alive():
                process.kill()
                process.join()

    def values(self) -> list[Any]:
        errors = {r: a[1] for r, a in sorted(self.answers.items()) if a[0] != "value"}
        if not errors:
            return [self.answers[rank][1] for rank in range(len(self.processes))]
        rank = min(errors, key=lambda r: (_blame(self.answers[r]), r))
        error = errors[rank]
        where = f"rank {rank} of {len(self.processes)}"
        said = f"{where}: {type(error).__name__}: {error}"
        if isinstance(error, RankError):
            raise RankError(rank, f"{where} {error}", errors)
        raise RankError(rank, said, errors) from error

    def _hear(self, rank: int) -> bool:
        """Takes one message; whether the rank has failed."""
        try:
            kind, value = self.pipes[rank].recv()
        except (EOFError, OSError):
            kind, value = "died", self._obituary(rank)
        if kind == "id":  # rank 0's, for the others
            for pipe in self.pipes[1:]:
                try:
                    pipe.send(value)
                except OSError:
                    pass  # its death is heard from its own pipe
            return False
        if kind in ("value", "error"):
            value = pickle.loads(value)
        self.answers[rank] = (kind, value)
        return kind != "value"

    def _obituary(self, rank: int) -> RankError:
        process = self.processes[rank]
        process.join(2)
        code = process.exitcode
        if code is not None and code < 0:
            return RankError(rank, f"died of {signal.Signals(-code).name}")
        return RankError(rank, f"ended with exit code {code} and without an answer")

    def _give_up(self, why: str) -> None:
        for rank in range(len(self.processes)):
            if rank not in self.answers:
                self.answers[rank] = ("late", RankError(rank, f"gave {why} and was killed"))


def _blame(answer: tuple[str, Any]) -> int:
    """Who caused it comes before who suffered from it."""
    kind, error = answer
    if kind == "late":
        return 3
    return 2 if isinstance(error, Error) and error.rank is not None else 1


def _rank(
    fn: Any,
    rank: int,
    ranks: int,
    args: tuple,
    pipe: Connection,
    inherited: list[Connection],
    settings: Settings,
) -> None:
    """A rank's whole life."""
    for other in inherited:  # else nobody would hear that the parent is gone
        other.close()
    try:
        answer = _answer(fn, rank, ranks, args, pipe, settings)
        pipe.send(answer)
        pipe.recv()  # rank 0 listens for the others until all have joined
    except (EOFError, OSError, KeyboardInterrupt):
        pass  # the parent has heard enough


def _answer(
    fn: Any, rank: int, ranks: int, args: tuple, pipe: Connection, settings: Settings
) -> tuple[str, bytes]:
    try:
        if rank == 0:
            held = unique_id()
            pipe.send(("id", held))
        else:
            held = pipe.recv()
        with Communicator.join(held, ranks, rank, **settings) as comm:
            value = fn(comm, *args)
        return "value", pickle.dumps(value)
    except BaseException as error:
        return "error", _pickled(error)


def _pickled(error: BaseException) -> bytes:
    """The exception with its traceback as a note; what cannot travel goes as its text."""
    note = "".join(traceback.format_exception(error)).rstrip()
    try:
        bytes_ = pickle.dumps(error)
        copy = pickle.loads(bytes_)
    except Exception:
        copy = RuntimeError(f"{type(error).__name__}: {error}")
    if hasattr(copy, "add_note"):
        copy.add_note(note)
    return pickle.dumps(copy)
