# SPDX-License-Identifier: Apache-2.0
"""Ranks that agreed to work together, and what they call."""

from __future__ import annotations

import atexit
import ctypes
import weakref
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref, c_int, c_void_p
from dataclasses import dataclass
from typing import Any, NoReturn, TypedDict, Unpack

from . import _c
from ._arguments import SIZE_MAX, text, whole
from ._buffers import Borrowed, borrow, type_named
from ._c import DataType, Op, Result, lib
from ._call import Call, How, Options, PreMulSum, options_of
from .errors import Error, check, last_error, misuse, refuse
from .memory import Shape, empty

_open: weakref.WeakSet[Communicator] = weakref.WeakSet()
_HARMLESS = (Result.INVALID_ARGUMENT, Result.INVALID_USAGE)
_TEXT_BYTES = 1 << 16
_MOST_RANKS = 65536


class Settings(TypedDict, total=False):
    """A communicator's configuration, by name. What is not given comes from WEFT_* variables."""

    timeout_ms: int  #: deadline of each operation
    init_timeout_ms: int  #: deadline of creation
    name: str  #: used in messages
    transport: str  #: "auto", "local" (threads), "shm", "verbs", "ofi" ...
    reproducible: bool  #: for every operation
    threads: int  #: that share the bytes of a large call of this rank


@dataclass(frozen=True)
class MemStats:
    """Bytes that the library itself holds for this rank of the communicator."""

    shared: int
    plans: int
    other: int


class Communicator:
    """n ranks, 0 to n - 1. Made by from_environment(), join(), all() or split(), never directly.

    Arrays are numpy's, torch's CPU tensors, or anything with a buffer: bytearray, array.array,
    memoryview, mmap. They are C-contiguous and used where they are, without a copy. Where `out` is
    left out, a new array like `send` is made; ``out=send`` is in place where weft.h allows it.
    Parts of several ranks lie one after another along the first axis.

    Every method that communicates takes the options of `How` by name, and with ``stream=`` returns
    a concurrent.futures.Future at once. One thread at a time uses a communicator; different ones
    are independent. The GIL is not held while a call waits. Ctrl-C is seen when the call returns,
    at its deadline at the latest (`timeout_ms`).

    As a context manager it is finalized and closed at the end, on an exception only closed.

    >>> import weft
    >>> with weft.Communicator.from_environment() as comm:
    ...     comm.rank, comm.size, bytes(comm.all_gather(b"me"))
    (0, 1, b'me')
    """

    rank: int  #: of this process or thread
    size: int  #: number of ranks

    def __init__(self, handle: int | None) -> None:
        self.handle = handle
        self.closed_by = ""  #: what has closed it
        self.broken = False  #: an error has been told that is the end of it
        self.rank, self.size = self._query(lib.weftCommUserRank), self._query(lib.weftCommCount)
        _open.add(self)

    # ---- Creating and ending --------------------------------------------------------------------

    @classmethod
    def from_environment(cls, **settings: Unpack[Settings]) -> Communicator:
        """All ranks that a launcher started: mpirun, srun, torchrun, AWS Batch, or WEFT_RANK,
        WEFT_SIZE and WEFT_ROOT. Without a launcher, one rank alone."""
        handle = c_void_p()
        config = config_of("from_environment", settings)
        check(lib.weftCommInitFromEnv(byref(handle), byref(config)))
        return cls(handle.value)

    @classmethod
    def join(
        cls, unique_id: bytes, ranks: int, rank: int, **settings: Unpack[Settings]
    ) -> Communicator:
        """Joins as `rank` of `ranks` that hold the same unique_id(); returns when all have."""
        fix = "pass what weft.unique_id() gave, as it is"
        if not isinstance(unique_id, (bytes, bytearray, memoryview)):
            refuse("join", f"the id is a {type(unique_id).__name__}", fix)
        if len(unique_id) != _c.UNIQUE_ID_BYTES:
            refuse("join", f"the id has {len(unique_id)} bytes, not {_c.UNIQUE_ID_BYTES}", fix)
        ranks, rank = whole("join", "ranks", ranks), whole("join", "rank", rank)
        handle = c_void_p()
        held = _c.UniqueId.from_buffer_copy(unique_id)
        config = config_of("join", settings)
        check(lib.weftCommInitRankConfig(byref(handle), ranks, held, rank, byref(config)))
        return cls(handle.value)

    @classmethod
    def all(cls, ranks: int, **settings: Unpack[Settings]) -> list[Communicator]:
        """All ranks of one group, for threads of this process: one each."""
        ranks = whole("all", "ranks", ranks, 1, _MOST_RANKS)
        handles = (c_void_p * ranks)()
        check(lib.weftCommInitAllConfig(handles, ranks, None, byref(config_of("all", settings))))
        return [cls(handle) for handle in handles]

    def split(
        self, color: int | None, key: int = 0, **settings: Unpack[Settings]
    ) -> Communicator | None:
        """Collective: ranks of equal color form a communicator, ordered by key, then by rank here.

        None for color None. Settings that are not given are this communicator's."""
        handle = c_void_p()
        config = byref(config_of("split", settings)) if settings else None
        number = _c.SPLIT_NOCOLOR if color is None else whole("split", "color", color)
        key = whole("split", "key", key)
        self._check(lib.weftCommSplit(self.handle, number, key, byref(handle), config), "split")
        return Communicator(handle.value) if handle.value else None

    def dup(self, **settings: Unpack[Settings]) -> Communicator:
        """Collective: the same ranks again, whose calls do not wait for this one's."""
        made = self.split(0, **settings)
        assert made is not None
        return made

    def finalize(self) -> None:
        """Waits for queued calls, and until others have made a rooted call that was the last."""
        self._check(lib.weftCommFinalize(self.handle), "finalize")

    def abort(self) -> None:
        """From any thread: calls in flight, here and on the peers, raise Aborted, and all later."""
        self._check(lib.weftCommAbort(self.handle), "abort")

    def close(self) -> None:
        """Frees it. Local and bounded: what is in flight is aborted. Idempotent."""
        self._close("close()")

    def _close(self, by: str) -> None:
        handle, self.handle = self.handle, None
        if handle is not None:
            self.closed_by = by
            lib.weftCommDestroy(handle)

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and self.handle is not None and not self.broken:
                self.finalize()
        finally:
            self._close("the end of its `with`")

    def __reduce__(self) -> NoReturn:
        fix = "make one there, by from_environment() or join(); here pass the same one on"
        misuse("Communicator", "it is of this process, and neither copied nor pickled", fix)

    def __del__(self) -> None:
        if getattr(self, "handle", None) is not None:
            self.close()

    def __repr__(self) -> str:
        state = "" if self.handle is not None else ", closed"
        return f"<weft.Communicator: rank {self.rank} of {self.size}{state}>"

    # ---- What it is -----------------------------------------------------------------------------

    @property
    def local_rank(self) -> int:
        """Rank among the ranks of this host."""
        return self._local()[0]

    @property
    def local_size(self) -> int:
        """Number of ranks on this host."""
        return self._local()[1]

    def error(self) -> Error | None:
        """The first error, None while it is healthy. Also looks for dead peers. Any thread."""
        first = c_int()
        self._check(lib.weftCommGetAsyncError(self.handle, byref(first)), "error")
        self.broken = self.broken or first.value != 0
        return last_error(first.value, self.handle) if first.value else None

    def mem_stats(self) -> MemStats:
        """Bytes that the library itself holds."""
        stats = _c.MemStats(ctypes.sizeof(_c.MemStats))
        self._check(lib.weftCommMemStats(self.handle, byref(stats)), "mem_stats")
        return MemStats(stats.shared, stats.plans, stats.other)

    def edges(self) -> str:
        """What carries bytes from this rank to the others: a line for each way."""
        return self._text("edges", lib.weftCommEdges, self.handle)

    def explain(
        self,
        collective: str | None,
        count: int = 0,
        dtype: DataType | str = DataType.FLOAT32,
        op: Op | str = Op.SUM,
        **how: Unpack[Options],
    ) -> str:
        """Which algorithm a call would use ("all_reduce", elements), and why.

        None for the collective: the numbers of this machine that the ranks count with."""
        call = Call(self, "explain", how, op)  # type: ignore[arg-type]
        name = None if collective is None else text(call.name, "collective", collective)
        count = whole(call.name, "count", count, 0, SIZE_MAX)
        kind, options = type_named(call.name, dtype), options_of(call.name, how)
        function, code = lib.weftCommExplain, call.operator
        return self._text(call.name, function, self.handle, name, count, kind, code, options)

    # ---- Collectives ----------------------------------------------------------------------------

    def all_reduce(
        self,
        send: Any,
        out: Any = None,
        op: Op | PreMulSum | str = Op.SUM,
        **how: Unpack[How],
    ) -> Any:
        """Element by element, `op` over all ranks' `send`: "sum", "prod", "max", "min", "avg".

        Of integers and bools also "band", "bor" and "bxor", which are bitwise. All ranks get the same bits. In place: ``out=send``.

        >>> import weft
        >>> from array import array
        >>> def work(comm):
        ...     mine = array("f", [comm.rank + 1, 10])
        ...     return comm.all_reduce(mine, out=mine).tolist()
        >>> weft.run(work, ranks=2)
        [[3.0, 20.0], [3.0, 20.0]]
        """
        call = Call(self, "all_reduce", how, op)
        data = call.read("send", send)
        to = call.result(out, data, data.shape)
        return call.run(
            lib.weftAllReduce,
            data.address,
            to.address,
            call.elements(data),
            call.type,
            call.operator,
            value=to.owner,
        )

    def all_gather(self, send: Any, out: Any = None, **how: Unpack[How]) -> Any:
        """Every rank's `send`, in rank order, for all: `out` is `size` times as long."""
        call = Call(self, "all_gather", how)
        data = call.read("send", send)
        to = call.result(out, data, call.gathered(data))
        count = call.elements(data)
        return call.run(
            lib.weftAllGather, data.address, to.address, count, call.type, value=to.owner
        )

    def reduce_scatter(
        self,
        send: Any,
        out: Any = None,
        op: Op | PreMulSum | str = Op.SUM,
        **how: Unpack[How],
    ) -> Any:
        """Rank r gets the reduction of block r of `send`, which is cut along the first axis."""
        call = Call(self, "reduce_scatter", how, op)
        data = call.read("send", send)
        to = call.result(out, data, call.block("send", data))
        return call.run(
            lib.weftReduceScatter,
            data.address,
            to.address,
            call.elements(to),
            call.type,
            call.operator,
            value=to.owner,
        )

    def all_gather_v(
        self,
        send: Any,
        counts: Sequence[int],
        displs: Sequence[int] | None = None,
        out: Any = None,
        **how: Unpack[How],
    ) -> Any:
        """As all_gather, with counts[r] elements of rank r at displs[r] of `out`.

        Counts and displs are the same on all ranks; without displs blocks are packed."""
        call = Call(self, "all_gather_v", how)
        data = call.read("send", send)
        counts, displs = call.counts("counts", counts), call.displs("displs", displs)
        call.check_bytes("send", data, counts[self.rank] * data.itemsize)
        to = call.spread(out, data, counts, displs)
        return call.run(
            lib.weftAllGatherV,
            data.address,
            to.address,
            call.sizes(counts),
            call.sizes(displs),
            call.type,
            value=to.owner,
        )

    def reduce_scatter_v(
        self,
        send: Any,
        counts: Sequence[int],
        displs: Sequence[int] | None = None,
        out: Any = None,
        op: Op | PreMulSum | str = Op.SUM,
        **how: Unpack[How],
    ) -> Any:
        """As reduce_scatter: rank r gets counts[r] elements, those at displs[r] of `send`."""
        call = Call(self, "reduce_scatter_v", how, op)
        data = call.read("send", send)
        counts, displs = call.counts("counts", counts), call.displs("displs", displs)
        call.check_room("send", data, counts, displs)
        to = call.result(out, data, (counts[self.rank],))
        return call.run(
            lib.weftReduceScatterV,
            data.address,
            to.address,
            call.sizes(counts),
            call.sizes(displs),
            call.type,
            call.operator,
            value=to.owner,
        )

    def broadcast(self, data: Any, root: int = 0, **how: Unpack[How]) -> Any:
        """Root's `data` comes to all ranks' `data`, which is returned."""
        call = Call(self, "broadcast", how)
        root = call.rank("root", root)
        mine = (call.read if self.rank == root else call.write)("data", data)
        return call.run(
            lib.weftBroadcast,
            mine.address,
            mine.address,
            call.elements(mine),
            call.type,
            root,
            value=data,
        )

    def reduce(
        self,
        send: Any,
        out: Any = None,
        op: Op | PreMulSum | str = Op.SUM,
        root: int = 0,
        **how: Unpack[How],
    ) -> Any:
        """As all_reduce, for `root` alone; other ranks get None."""
        call = Call(self, "reduce", how, op)
        root = call.rank("root", root)
        data = call.read("send", send)
        to = call.result(out, data, data.shape) if self.rank == root else None
        return call.run(
            lib.weftReduce,
            data.address,
            to.address if to else None,
            call.elements(data),
            call.type,
            call.operator,
            root,
            value=to.owner if to else None,
        )

    def gather(self, send: Any, out: Any = None, root: int = 0, **how: Unpack[How]) -> Any:
        """As all_gather, for `root` alone; other ranks get None."""
        call = Call(self, "gather", how)
        root = call.rank("root", root)
        data = call.read("send", send)
        to = call.result(out, data, call.gathered(data)) if self.rank == root else None
        return call.run(
            lib.weftGather,
            data.address,
            to.address if to else None,
            call.elements(data),
            call.type,
            root,
            value=to.owner if to else None,
        )

    def scatter(self, send: Any, out: Any = None, root: int = 0, **how: Unpack[How]) -> Any:
        """Block r of root's `send`, which is cut along the first axis, for rank r.

        Ranks that are not root pass ``send=None`` and `out`, of as many elements as a block has."""
        call = Call(self, "scatter", how)
        root = call.rank("root", root)
        if self.rank == root:
            data: Borrowed | None = call.read("send", send)
            to = call.result(out, data, call.block("send", data))  # type: ignore[arg-type]
        else:
            data, to = None, call.received(out)
        return call.run(
            lib.weftScatter,
            data.address if data else None,
            to.address,
            call.elements(to),
            call.type,
            root,
            value=to.owner,
        )

    def all_to_all(self, send: Any, out: Any = None, **how: Unpack[How]) -> Any:
        """Block d of `send` becomes block s of rank d's `out`, where s is this rank."""
        call = Call(self, "all_to_all", how)
        data = call.read("send", send)
        call.block("send", data)
        to = call.result(out, data, data.shape)
        return call.run(
            lib.weftAlltoAll,
            data.address,
            to.address,
            call.elements(data) // self.size,
            call.type,
            value=to.owner,
        )

    def gather_v(
        self,
        send: Any,
        counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
        out: Any = None,
        root: int = 0,
        **how: Unpack[How],
    ) -> Any:
        """As gather, with counts[r] elements of rank r at displs[r] of root's `out`.

        Root alone passes counts and displs; what ranks send must be what it expects."""
        call = Call(self, "gather_v", how)
        root = call.rank("root", root)
        data = call.read("send", send)
        sizes = places = to = None
        if self.rank == root:
            given = call.counts("counts", call.given("counts", counts))
            at = call.displs("displs", displs)
            sizes, places = call.sizes(given), call.sizes(at)
            to = call.spread(out, data, given, at)
        return call.run(
            lib.weftGatherV,
            data.address,
            call.elements(data),
            to.address if to else None,
            sizes,
            places,
            call.type,
            root,
            value=to.owner if to else None,
        )

    def scatter_v(
        self,
        send: Any,
        counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
        out: Any = None,
        root: int = 0,
        **how: Unpack[How],
    ) -> Any:
        """As scatter: counts[r] elements at displs[r] of root's `send` for rank r.

        Ranks that are not root pass ``send=None`` and `out`, of as many elements as root sends."""
        call = Call(self, "scatter_v", how)
        root = call.rank("root", root)
        data = sizes = places = None
        if self.rank == root:
            data = call.read("send", send)
            given = call.counts("counts", call.given("counts", counts))
            at = call.displs("displs", displs)
            sizes, places = call.sizes(given), call.sizes(at)
            call.check_room("send", data, given, at)
            to = call.result(out, data, (given[root],))
        else:
            to = call.received(out)
        return call.run(
            lib.weftScatterV,
            data.address if data else None,
            sizes,
            places,
            to.address,
            call.elements(to),
            call.type,
            root,
            value=to.owner,
        )

    def all_to_all_v(
        self,
        send: Any,
        send_counts: Sequence[int],
        recv_counts: Sequence[int],
        send_displs: Sequence[int] | None = None,
        recv_displs: Sequence[int] | None = None,
        out: Any = None,
        **how: Unpack[How],
    ) -> Any:
        """send_counts[d] elements at send_displs[d] of `send` for each rank d, and what comes from
        rank s is recv_counts[s] elements at recv_displs[s] of `out`. Without displs: packed."""
        call = Call(self, "all_to_all_v", how)
        data = call.read("send", send)
        counts = call.counts("send_counts", send_counts)
        places = call.displs("send_displs", send_displs)
        call.check_room("send", data, counts, places)
        expected = call.counts("recv_counts", recv_counts)
        slots = call.displs("recv_displs", recv_displs)
        to = call.spread(out, data, expected, slots)
        return call.run(
            lib.weftAlltoAllV,
            data.address,
            call.sizes(counts),
            call.sizes(places),
            to.address,
            call.sizes(expected),
            call.sizes(slots),
            call.type,
            value=to.owner,
        )

    def barrier(self, **how: Unpack[How]) -> Any:
        """Returns when all ranks have called it."""
        return Call(self, "barrier", how).run(lib.weftBarrier)

    # ---- Point to point -------------------------------------------------------------------------

    def send(self, data: Any, peer: int, **how: Unpack[How]) -> Any:
        """Sends to `peer`; may wait for its recv: exchanges go into a weft.group()."""
        call = Call(self, "send", how)
        peer = call.rank("peer", peer)
        mine = call.read("data", data)
        return call.run(lib.weftSend, mine.address, call.elements(mine), call.type, peer)

    def recv(self, out: Any, peer: int, **how: Unpack[How]) -> Any:
        """Receives from `peer` into `out`, which is returned: as many elements as it sends."""
        call = Call(self, "recv", how)
        peer = call.rank("peer", peer)
        to = call.write("out", out)
        return call.run(
            lib.weftRecv, to.address, call.elements(to), call.type, peer, value=to.owner
        )

    # ---- Operations and memory ------------------------------------------------------------------

    def pre_mul_sum(self, scalar: float, dtype: DataType | str = DataType.FLOAT32) -> PreMulSum:
        """An operation: the sum over ranks of scalar * input. Each rank may have its own scalar."""
        return PreMulSum(self, scalar, dtype)

    def empty(self, shape: Shape, dtype: Any = "float32") -> Any:
        """weft.empty(): memory that is fastest in collectives, of any communicator."""
        return empty(shape, dtype)

    def register(self, array: Any) -> Callable[[], None]:
        """Makes an array as fast in collectives as those of weft.empty(); returns what undoes it.

        Its pages move into memory that the ranks of a host share (weftCommRegister in weft.h).
        Undo it before the array goes; nobody may write to it in either call."""
        memory: Borrowed | None = borrow("register", "array", array)
        handle = c_void_p()
        made = lib.weftCommRegister(self.handle, memory.address, memory.nbytes, byref(handle))
        self._check(made, "register")

        def deregister() -> None:
            nonlocal memory
            if memory is not None and self.handle is not None:
                self._check(lib.weftCommDeregister(self.handle, handle))
            memory = None

        return deregister

    # ---- Helpers --------------------------------------------------------------------------------

    def _check(self, result: int, call: str = "Communicator") -> None:
        if result:
            if self.handle is None:
                by = f" by {self.closed_by}" if self.closed_by else ""
                refuse(call, f"the communicator was closed{by}", "call it before, or make a new one")
            self.broken = self.broken or result not in _HARMLESS
            raise last_error(result, self.handle)

    def _query(self, function: Any) -> int:
        value = c_int()
        self._check(function(self.handle, byref(value)))
        return value.value

    def _local(self) -> tuple[int, int]:
        rank, size = c_int(), c_int()
        self._check(lib.weftCommLocalRank(self.handle, byref(rank), byref(size)), "local_rank")
        return rank.value, size.value

    def _text(self, call: str, function: Any, *arguments: Any) -> str:
        told = ctypes.create_string_buffer(_TEXT_BYTES)
        self._check(function(*arguments, told, _TEXT_BYTES), call)
        return told.value.decode(errors="replace")


def config_of(call: str, settings: Settings) -> _c.Config:
    """weftConfig_t of what a call has been given by name."""
    if not isinstance(settings, Mapping):
        refuse(call, f"settings is {settings!r}", "pass a dict, such as {'timeout_ms': 5000}")
    unknown = settings.keys() - Settings.__annotations__.keys()
    if unknown:
        raise TypeError(
            f"a communicator has no setting {', '.join(sorted(unknown))}; "
            f"it has {', '.join(Settings.__annotations__)}"
        )
    config = _c.Config()
    numbers = {"timeout_ms": "timeoutMs", "init_timeout_ms": "initTimeoutMs"}
    numbers |= {"reproducible": "reproducible", "threads": "threads"}
    for name, field in numbers.items():
        if settings.get(name) is not None:
            setattr(config, field, whole(call, name, settings[name]))  # type: ignore[literal-required]
    for name, field in {"name": "commName", "transport": "transport"}.items():
        if settings.get(name) is not None:
            setattr(config, field, text(call, name, settings[name]))  # type: ignore[literal-required]
    return config


def unique_id() -> bytes:
    """Names one communicator to be, and is a secret: whoever holds it can join.

    This process listens for the ranks and must live until all have joined. Hand the id over through
    a pipe, a launcher's key-value store or a 0600 file, never on a command line."""
    made = _c.UniqueId()
    check(lib.weftGetUniqueId(byref(made)))
    return bytes(made)


def algorithms(collective: str | None = None) -> list[str]:
    """Names that `algorithm=` accepts for a collective ("all_reduce"), or all.

    >>> import weft
    >>> "ring" in weft.algorithms("all_reduce")
    True
    """
    asked = None if collective is None else text("algorithms", "collective", collective)
    names = lib.weftAlgorithms(asked)
    return [name.strip() for name in names.decode().split(",") if name.strip()]


@atexit.register
def _close_all() -> None:
    """What is open at the end is closed, so that streams have nothing left to wait for."""
    for comm in list(_open):
        comm._close("the end of the program")
