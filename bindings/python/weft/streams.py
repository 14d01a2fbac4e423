# SPDX-License-Identifier: Apache-2.0
"""Queued calls as futures: streams, events, and the group that begins calls together.

A call with ``stream=`` returns a concurrent.futures.Future, whose result is what the call without
one returns. It is set on the stream's worker thread: callbacks of the future run there and must not
wait for that stream.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import threading
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from ._buffers import Borrowed
from ._c import Result, StreamFn, lib
from .errors import Error, check, last_error, refuse

_streams: weakref.WeakSet[Stream] = weakref.WeakSet()
_left: list[int] = []  # streams that were dropped on a worker, which cannot wait for itself
_here = threading.local()


class Stream:
    """An in-order queue with a worker thread. Any number of communicators may use it.

    >>> import weft
    >>> stream = weft.Stream()
    >>> with weft.Communicator.all(1)[0] as comm:
    ...     future = comm.all_reduce(bytearray(b"\\1\\2"), stream=stream)
    ...     bytes(future.result())
    b'\\x01\\x02'
    """

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        check(lib.weftStreamCreate(ctypes.byref(handle)))
        self.handle = handle.value
        _streams.add(self)
        while _left:
            lib.weftStreamDestroy(_left.pop())

    def synchronize(self) -> None:
        """Waits until all that was queued so far is done; raises the first error since then."""
        check(lib.weftStreamSynchronize(handle_of("synchronize", self)))

    def done(self) -> bool:
        """Whether all that was queued is done; raises the first error since synchronize()."""
        result = lib.weftStreamQuery(handle_of("done", self))
        if result not in (Result.SUCCESS, Result.IN_PROGRESS):
            raise last_error(result)
        return result == Result.SUCCESS

    def wait(self, event: Event) -> None:
        """What is queued later waits for the latest record of `event`."""
        check(lib.weftStreamWaitEvent(handle_of("wait", self), _event("wait", event).handle))

    def close(self) -> None:
        """Waits for the queued work, which its deadlines bound, and frees. Idempotent."""
        handle, self.handle = self.handle, None
        if handle is None:
            return
        if getattr(_here, "working", False):
            _left.append(handle)
        else:
            lib.weftStreamDestroy(handle)

    def __del__(self) -> None:
        if getattr(self, "handle", None) is not None:
            self.close()


class Event:
    """A point in a stream that others can wait for."""

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        check(lib.weftEventCreate(ctypes.byref(handle)))
        self.handle = handle.value

    def record(self, stream: Stream | None = None) -> None:
        """Moves here: to the end of the stream as it is now. Without a stream it is passed."""
        queue = None if stream is None else handle_of("record", stream)
        check(lib.weftEventRecord(self.handle, queue))

    def synchronize(self) -> None:
        """Waits until the latest record is passed."""
        check(lib.weftEventSynchronize(self.handle))

    def done(self) -> bool:
        """Whether the latest record is passed."""
        result = lib.weftEventQuery(self.handle)
        if result not in (Result.SUCCESS, Result.IN_PROGRESS):
            raise last_error(result)
        return result == Result.SUCCESS

    def since(self, start: Event) -> float:
        """Milliseconds from `start` to this event, both of which are passed."""
        ms = ctypes.c_float()
        began = _event("since", start).handle
        check(lib.weftEventElapsedTime(ctypes.byref(ms), began, self.handle))
        return ms.value

    def __del__(self) -> None:
        if getattr(self, "handle", None) is not None:
            lib.weftEventDestroy(self.handle)


def handle_of(call: str, stream: Any) -> int:
    """Of a stream that is open. Without one the library would run the call at once."""
    if not isinstance(stream, Stream):
        refuse(call, f"stream is {stream!r}", "pass a weft.Stream")
    if stream.handle is None:
        refuse(call, "the stream was closed", "pass one that is open")
    return stream.handle


def _event(call: str, event: Any) -> Event:
    if not isinstance(event, Event):
        refuse(call, f"event is {event!r}", "pass a weft.Event")
    return event


# ---- Futures ------------------------------------------------------------------------------------


class _Queued:
    """A call that a stream has not run yet. It holds the memory of the call."""

    def __init__(self, comm: Any, stream: Stream, value: Any, held: Iterable[Borrowed]) -> None:
        # The stream's handle alone: its worker must not be the last to drop it.
        self.comm, self.stream, self.value, self.held = comm, stream.handle, value, list(held)
        self.future: Future = Future()
        self.future.set_running_or_notify_cancel()  # what is queued can't be taken back

    def finish(self, error: Error | None) -> None:
        for borrowed in self.held:
            borrowed.release()
        if error is not None:
            self.comm.broken = True
            self.future.set_exception(error)
        else:
            self.future.set_result(self.value)


_queued: dict[int, _Queued] = {}
_numbers = itertools.count(1)


@StreamFn
def _passed(number: int) -> None:
    _here.working = True
    call = _queued.pop(number)
    call.finish(_error_of(call))


def _error_of(call: _Queued) -> Error | None:
    """A stream keeps the first error of its calls; this one's is also its communicator's."""
    result = lib.weftStreamQuery(call.stream)
    if result in (Result.SUCCESS, Result.IN_PROGRESS):
        return None
    error = last_error(result)
    first = ctypes.c_int()
    failed = lib.weftCommGetAsyncError(call.comm.handle, ctypes.byref(first))
    return error if failed or first.value else None


def _await(call: _Queued) -> None:
    number = next(_numbers)
    _queued[number] = call
    result = lib.weftStreamCallback(call.stream, _passed, number)
    if result:
        del _queued[number]
        call.finish(last_error(result))


# ---- Groups -------------------------------------------------------------------------------------


class _Group(threading.local):
    depth = 0

    def __init__(self) -> None:
        self.held: list[Borrowed] = []
        self.queued: list[_Queued] = []


_group = _Group()


@contextmanager
def group() -> Iterator[None]:
    """Calls of this thread inside begin together at its end, which raises their first error.

    An exchange of messages needs one: a send may wait for its receive. Calls on a stream return
    their futures at once; of others the results are there after the group.

    >>> import weft
    >>> with weft.Communicator.all(1)[0] as comm:
    ...     mine, theirs = bytearray(b"hello"), bytearray(5)
    ...     with weft.group():
    ...         _ = comm.send(mine, peer=0)
    ...         _ = comm.recv(theirs, peer=0)
    ...     theirs.decode()
    'hello'
    """
    check(lib.weftGroupStart())
    _group.depth += 1
    try:
        yield
    except BaseException:
        try:
            _end()
        except Error:
            pass  # what went wrong first is told
        raise
    _end()


def _end() -> None:
    _group.depth -= 1
    result = lib.weftGroupEnd()
    if _group.depth:
        return check(result)
    error = last_error(result) if result else None
    held, _group.held = _group.held, []
    queued, _group.queued = _group.queued, []
    for call in queued:
        _await(call) if error is None else call.finish(error)
    for borrowed in held:
        borrowed.release()
    if error is not None:
        raise error


def complete(comm: Any, stream: Stream | None, value: Any, held: list[Borrowed]) -> Any:
    """What a call that was accepted returns: its value, or a future of that."""
    if stream is None:
        if _group.depth:
            _group.held += held
        return value  # else the memory is released with the call
    call = _Queued(comm, stream, value, held)
    if _group.depth:
        _group.queued.append(call)
    else:
        _await(call)
    return call.future


@atexit.register
def _close_all() -> None:
    """Workers must not call into an interpreter that has ended."""
    for stream in list(_streams):
        stream.close()
    while _left:
        lib.weftStreamDestroy(_left.pop())
