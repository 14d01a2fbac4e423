# SPDX-License-Identifier: Apache-2.0
"""One operation on its way to the library: options, buffers, element type and operator, checked."""

from __future__ import annotations

import ctypes
import struct
from math import prod
from typing import TYPE_CHECKING, Any, TypedDict

from . import _c, memory, streams
from ._arguments import numbers, rank, text, whole
from ._buffers import Borrowed, Kind, borrow, kind_of, type_named
from ._c import DataType, Op, lib
from .errors import refuse
from .streams import Stream

if TYPE_CHECKING:
    from .communicator import Communicator


class Options(TypedDict, total=False):
    """weftOpts_t, by name."""

    timeout_ms: int | None  #: deadline of this operation
    algorithm: str | None  #: force one by name; all ranks the same
    reproducible: bool | None  #: fold sums in rank order: the same bits always; all ranks the same
    label: str | None  #: shown in errors and logs


class How(Options, total=False):
    """What every operation takes, by name."""

    stream: Stream | None  #: queue the call there and return a future of its result
    dtype: DataType | str | None  #: what elements are, where the array doesn't say: "bfloat16"


_MOVES = object()  # in place of an operator: elements are moved
_OF_BOOLS = (Op.MAX, Op.MIN, Op.BAND, Op.BOR, Op.BXOR)
_OPTIONS = frozenset(How.__annotations__)
_FORMATS = dict(zip(DataType, "bBiIqQefd"))


class PreMulSum:
    """sum over ranks of scalar * input: Communicator.pre_mul_sum() makes one."""

    def __init__(self, comm: Communicator, scalar: float, dtype: DataType | str) -> None:
        self.type = type_named("pre_mul_sum", dtype)
        self.comm = comm
        code = ctypes.c_int()
        bits = scalar_bits(scalar, self.type)
        made = lib.weftRedOpCreatePreMulSum(ctypes.byref(code), bits, self.type, comm.handle)
        comm._check(made, "pre_mul_sum")
        self.code: int | None = code.value

    def close(self) -> None:
        """Forgets it; else the communicator does so at its end. Idempotent."""
        code, self.code = self.code, None
        if code is not None and self.comm.handle is not None:
            self.comm._check(lib.weftRedOpDestroy(code, self.comm.handle))

    def __enter__(self) -> PreMulSum:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def scalar_bits(scalar: float, kind: DataType) -> bytes:
    """A number as an element of `kind`; bfloat16 is rounded to nearest even."""
    try:
        if kind != DataType.BFLOAT16:
            return struct.pack(_FORMATS[kind], scalar)
        bits = struct.unpack("<I", struct.pack("<f", scalar))[0]
        return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF)
    except (struct.error, OverflowError) as error:
        name = kind.name.lower()
        refuse(
            "pre_mul_sum", f"{scalar!r} is no {name} ({error})", f"pass a number that {name} has"
        )


def operator_named(call: str, op: Op | PreMulSum | str) -> Op | PreMulSum:
    """weft.Op.SUM or "sum", or what pre_mul_sum() gave."""
    if isinstance(op, (Op, PreMulSum)):
        return op
    found = Op.__members__.get(str(op).upper())
    if found is None:
        names = ", ".join(name.lower() for name in Op.__members__)
        refuse(call, f"op {op!r} is no operation", f"one of {names}, or comm.pre_mul_sum(...)")
    return found


class Call:
    """What one method of a communicator passes on."""

    def __init__(self, comm: Communicator, name: str, how: How, op: Any = _MOVES) -> None:
        unknown = how.keys() - _OPTIONS if how else None
        if unknown:
            raise TypeError(
                f"{name}() has no option {', '.join(sorted(unknown))}; "
                f"it has {', '.join(sorted(_OPTIONS))}"
            )
        self.comm, self.name, self.how = comm, name, how
        self.op = None if op is _MOVES else operator_named(name, op)
        self.kind: Kind | None = None
        self.held: list[Borrowed] = []

    def read(self, what: str, owner: Any) -> Borrowed:
        """Memory that the call reads. The first one says what elements are."""
        it = borrow(self.name, what, owner)
        self.held.append(it)
        kind = kind_of(self.name, what, it, self.how.get("dtype"), self.op is None)
        if self.kind is None:
            self.kind = kind
            if self.op is not None:
                self._check_operator(it)
        elif kind != self.kind:
            first = self.held[0]
            refuse(
                self.name,
                f"{what} has elements of type {it.name or it.itemsize}, the other buffer of "
                f"{first.name or first.itemsize}",
                "pass buffers of one type",
            )
        return it

    def write(self, what: str, owner: Any) -> Borrowed:
        """Memory that the call writes."""
        it = self.read(what, owner)
        if it.readonly:
            refuse(self.name, f"{what} is read-only", "pass an array that may be written")
        return it

    def result(self, out: Any, like: Borrowed, shape: tuple[int, ...]) -> Borrowed:
        """`out`, which must have room for `shape`; if it is None, a new array like `like`."""
        it = self.write("out", memory.like(like, shape) if out is None else out)
        self.check_bytes("out", it, prod(shape) * like.itemsize)
        return it

    def check_bytes(self, what: str, it: Borrowed, wanted: int) -> None:
        if it.nbytes != wanted:
            size = it.itemsize
            refuse(
                self.name,
                f"{what} has {it.elements} elements of {size} bytes, not {wanted / size:g}",
                f"pass {wanted} bytes",
            )

    def block(self, what: str, it: Borrowed) -> tuple[int, ...]:
        """The shape of one rank's part of `it`, which is cut along the first axis."""
        ranks = self.comm.size
        rows = it.shape[0] if it.shape else 1
        if rows % ranks:
            refuse(
                self.name,
                f"{what} has {rows} rows for {ranks} ranks, which do not divide them",
                "pass a multiple, pad it, or take the form with counts",
            )
        return (rows // ranks, *it.shape[1:])

    def gathered(self, it: Borrowed) -> tuple[int, ...]:
        """The shape of all ranks' parts like `it`, one after another along the first axis."""
        return (self.comm.size * (it.shape[0] if it.shape else 1), *it.shape[1:])

    def spread(self, out: Any, like: Borrowed, counts: Any, displs: Any) -> Borrowed:
        """As result(), for blocks at displs; it may be larger than they need."""
        to = self.write("out", memory.like(like, (_reach(counts, displs),)) if out is None else out)
        self.check_room("out", to, counts, displs)
        return to

    def check_room(self, what: str, it: Borrowed, counts: Any, displs: Any) -> None:
        reach = _reach(counts, displs)
        if it.elements < reach:
            fix = "pass a larger buffer, or correct counts and displs"
            refuse(self.name, f"{what} has {it.elements} elements, blocks reach to {reach}", fix)

    def elements(self, it: Borrowed) -> int:
        """As the library counts them."""
        assert self.kind is not None
        return it.nbytes // self.kind.size

    def given(self, what: str, values: Any) -> Any:
        """What root must pass."""
        if values is None:
            refuse(self.name, f"root passes no {what}", f"pass {what} at root, one a rank")
        return values

    def counts(self, what: str, values: Any) -> list[int]:
        """Elements, one number a rank."""
        return numbers(self.name, what, values, self.comm.size)

    def displs(self, what: str, values: Any) -> list[int] | None:
        """Where they are; None: packed."""
        return None if values is None else self.counts(what, values)

    def sizes(self, values: list[int] | None) -> Any:
        """Either as the library reads them; None stays NULL."""
        if values is None:
            return None
        assert self.kind is not None
        return (ctypes.c_size_t * len(values))(*(value * self.kind.each for value in values))

    def rank(self, what: str, value: Any) -> int:
        """Root or peer."""
        return rank(self.name, what, value, self.comm.size)

    def received(self, out: Any) -> Borrowed:
        """`out` of a rank that is not root, which alone says how much comes."""
        if out is None:
            refuse(
                self.name,
                f"rank {self.comm.rank}, which is not root, passes no out",
                "pass out=, an array of as many elements as root has for this rank",
            )
        return self.write("out", out)

    @property
    def type(self) -> int:
        assert self.kind is not None
        return self.kind.type

    @property
    def operator(self) -> int:
        op = self.op
        return (op.code or 0) if isinstance(op, PreMulSum) else op  # type: ignore[return-value]

    def run(self, function: Any, *arguments: Any, value: Any = None) -> Any:
        """Calls; returns `value`, or a future of it."""
        stream = self.how.get("stream")
        queue = None if stream is None else streams.handle_of(self.name, stream)
        result = function(*arguments, self.comm.handle, queue, options_of(self.name, self.how))
        if result:
            self.comm._check(result, self.name)
        return streams.complete(self.comm, stream, value, self.held)

    def _check_operator(self, it: Borrowed) -> None:
        assert self.kind is not None
        if isinstance(self.op, PreMulSum):
            if self.op.type != self.kind.type or self.op.code is None:
                name = self.op.type.name.lower()
                fix = "make it for the type of the array"
                refuse(self.name, f"op is closed, or for {name} and send has {it.name}", fix)
            if self.op.comm is not self.comm:
                fix = "make one by pre_mul_sum() of the communicator that calls"
                refuse(self.name, f"op is of another communicator, {self.op.comm!r}", fix)
            return
        if it.name == "bool" and self.op not in _OF_BOOLS:
            refuse(self.name, "send has bools", "op='bor', 'band' or 'bxor'; or convert them")
        if self.kind.each == 2 and self.op not in (Op.SUM, Op.AVG):
            refuse(self.name, "send has complex numbers", "op='sum' or 'avg', which go by parts")


def _reach(counts: Any, displs: Any) -> int:
    """Elements from the first to the end of the last block."""
    if displs is None:
        return sum(counts)
    return max((at + count for at, count in zip(displs, counts) if count), default=0)


def options_of(call: str, how: Options) -> Any:
    """weftOpts_t by reference, or None if all is as the communicator has it."""
    if not how:
        return None
    timeout, algorithm = how.get("timeout_ms"), how.get("algorithm")
    reproducible, label = how.get("reproducible"), how.get("label")
    if timeout is None and algorithm is None and reproducible is None and label is None:
        return None
    opts = _c.Opts()
    if timeout is not None:
        opts.timeoutMs = whole(call, "timeout_ms", timeout)
    if reproducible is not None:
        opts.reproducible = whole(call, "reproducible", reproducible, 0, 1)
    opts.algorithm = None if algorithm is None else text(call, "algorithm", algorithm)
    opts.label = None if label is None else text(call, "label", label)
    return ctypes.byref(opts)
