# SPDX-License-Identifier: Apache-2.0
"""A failed call as an exception: who, what, where and the fix, as a line and as fields."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, NoReturn

from . import _c
from ._c import Result, lib


@dataclass(frozen=True)
class ErrorInfo:
    """An error as data. What is not known is None, 0 or empty."""

    rank: int | None = None  #: the culprit, in the communicator: who died, left, is late, disagrees
    pid: int = 0  #: of `rank`
    host: str = ""  #: of `rank`, or the culprit itself
    device: str = ""  #: this end of a lost link
    port: int = 0  #: of `device`, from 1
    call: str = ""  #: the call; of a mismatch, what each called
    message: str = ""  #: the line without its fix
    fix: str = ""  #: what to do
    missing_ranks: tuple[int, ...] = ()  #: who did not come
    variable: str = ""  #: of the environment, whose value is refused


class Error(RuntimeError):
    """A call that failed. ``str(error)`` is the line that says who, what, where and the fix.

    >>> import weft
    >>> error = weft.Error.of(weft.Result.TIMEOUT, "rank 1 is late; fix: wait", rank=1)
    >>> isinstance(error, weft.Timeout), isinstance(error, TimeoutError), error.rank
    (True, True, 1)
    """

    result: Result
    info: ErrorInfo

    def __init__(self, result: int, line: str, info: ErrorInfo | None = None) -> None:
        super().__init__(line)
        self.args = (line,)  # OSError takes three arguments for an errno and its text
        self.result = Result(result)
        self.info = info or ErrorInfo(message=line)

    @staticmethod
    def of(result: int, line: str, **fields: Any) -> Error:
        """An exception of the class that belongs to `result`."""
        fields.setdefault("message", line)
        info = ErrorInfo(**fields)
        return _CLASSES.get(Result(result), Error)(result, line, info)

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple:
        return type(self), (int(self.result), str(self), self.info), self.__dict__

    def __getattr__(self, name: str) -> Any:
        if name in ErrorInfo.__dataclass_fields__:
            return getattr(self.info, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


class InvalidArgument(Error, ValueError):
    """The call had no effect, and the communicator stays usable."""


class InvalidUsage(Error):
    """The call had no effect, and the communicator stays usable."""


class RemoteError(Error, ConnectionError):
    """A rank died, left or reported an error, or a link is lost: `rank` says whose."""


class Timeout(Error, TimeoutError):
    """A deadline passed: `rank` and `missing_ranks` say who is late."""


class Mismatch(Error):
    """Ranks called different things: `call` has both."""


class Aborted(Error):
    """Communicator.abort() was called, here or elsewhere."""


class OutOfMemory(Error, MemoryError):
    """Memory, descriptors or a handle could not be had."""


class AuthenticationError(Error, PermissionError):
    """This rank does not hold the id, or the secret, of the others."""


_CLASSES: dict[Result, type[Error]] = {
    Result.INVALID_ARGUMENT: InvalidArgument,
    Result.INVALID_USAGE: InvalidUsage,
    Result.REMOTE_ERROR: RemoteError,
    Result.TIMEOUT: Timeout,
    Result.MISMATCH: Mismatch,
    Result.ABORTED: Aborted,
    Result.OUT_OF_MEMORY: OutOfMemory,
    Result.AUTHENTICATION: AuthenticationError,
}


def last_error(result: int, comm: int | None = None) -> Error:
    """The exception for a call of this thread that has just returned `result`."""
    line = lib.weftGetLastError(comm).decode(errors="replace")
    if not line:
        return Error.of(result, lib.weftGetErrorString(result).decode())
    found = _c.ErrorInfo()
    lib.weftGetLastErrorInfo(comm, ctypes.byref(found))
    texts = ("host", "device", "call", "message", "fix", "variable")
    return Error.of(
        result,
        line,
        rank=found.rank if found.rank >= 0 else None,
        pid=found.pid,
        port=found.port,
        missing_ranks=tuple(found.missingRanks[i] for i in range(found.missingCount)),
        **{name: getattr(found, name).decode(errors="replace") for name in texts},
    )


def check(result: int, comm: int | None = None) -> None:
    """Raises unless `result` is success."""
    if result:
        raise last_error(result, comm)


def refuse(call: str, message: str, fix: str) -> NoReturn:
    """Raises InvalidArgument: nothing has been called yet."""
    said = f"{call}(): {message}"
    raise Error.of(
        Result.INVALID_ARGUMENT, f"{said}; fix: {fix}", call=f"{call}()", message=said, fix=fix
    )


def misuse(call: str, message: str, fix: str) -> NoReturn:
    """Raises InvalidUsage: nothing has been called yet."""
    said = f"{call}(): {message}"
    raise Error.of(
        Result.INVALID_USAGE, f"{said}; fix: {fix}", call=f"{call}()", message=said, fix=fix
    )
