# SPDX-License-Identifier: Apache-2.0
"""Memory of the caller during a call: numpy arrays, torch tensors, whatever has a buffer."""

from __future__ import annotations

import ctypes
import re
from ctypes import POINTER, c_char_p, c_int, c_ssize_t, c_void_p
from math import prod
from typing import Any, NamedTuple

from ._c import DataType
from .errors import refuse

try:
    import numpy
except ImportError:  # buffers do as well
    numpy = None  # type: ignore[assignment]

ITEM_SIZES = {
    DataType.INT8: 1,
    DataType.UINT8: 1,
    DataType.INT32: 4,
    DataType.UINT32: 4,
    DataType.INT64: 8,
    DataType.UINT64: 8,
    DataType.FLOAT16: 2,
    DataType.FLOAT32: 4,
    DataType.FLOAT64: 8,
    DataType.BFLOAT16: 2,
}
_TYPES = {kind.name.lower(): kind for kind in DataType}
_FLOATS = {"e": "float16", "f": "float32", "d": "float64", "Zf": "complex64", "Zd": "complex128"}
_FULL_RO = 0x0118 | 0x0004  # PyBUF_FULL_RO: any layout, so that we can say what is wrong


class _PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", c_void_p),
        ("obj", ctypes.py_object),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", POINTER(c_ssize_t)),
        ("strides", POINTER(c_ssize_t)),
        ("suboffsets", POINTER(c_ssize_t)),
        ("internal", c_void_p),
    ]

    def __del__(self) -> None:
        _release(ctypes.byref(self))  # of one that was not filled, it does nothing


_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes = [ctypes.py_object, POINTER(_PyBuffer), c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes = [POINTER(_PyBuffer)]
_release.restype = None
_is_contiguous = ctypes.pythonapi.PyBuffer_IsContiguous
_is_contiguous.argtypes = [POINTER(_PyBuffer), ctypes.c_char]


class Kind(NamedTuple):
    """What weft is told that elements are."""

    type: int  #: a DataType
    size: int  #: bytes of one
    each: int  #: elements of `type` in one of the array: a complex number is two reals


_KINDS = {name: Kind(int(kind), ITEM_SIZES[kind], 1) for name, kind in _TYPES.items()}
_KINDS["bool"] = _KINDS["uint8"]
_KINDS["complex64"] = Kind(int(DataType.FLOAT32), 4, 2)
_KINDS["complex128"] = Kind(int(DataType.FLOAT64), 8, 2)
_ARRAYS = {} if numpy is None else {numpy.dtype(n): n for n in _KINDS if n != "bfloat16"}


class Borrowed:
    """The memory of one object. It is not freed or resized before release()."""

    __slots__ = "owner", "address", "shape", "itemsize", "nbytes", "name", "readonly", "_view"

    owner: Any
    address: int
    shape: tuple[int, ...]
    itemsize: int
    nbytes: int
    name: str  #: of the element's type, as numpy spells it; empty for one that weft does not know
    readonly: bool
    _view: _PyBuffer | None

    @property
    def elements(self) -> int:
        return prod(self.shape)

    def release(self) -> None:
        self._view = None


def borrow(call: str, what: str, owner: Any) -> Borrowed:
    """The memory of `owner`, which must lie in one piece."""
    if numpy is not None and type(owner) is numpy.ndarray and owner.dtype in _ARRAYS:
        return _borrow_array(call, what, owner)
    if hasattr(owner, "data_ptr"):
        return _borrow_tensor(call, what, owner)
    dtype = getattr(owner, "dtype", None)
    if getattr(dtype, "kind", "") not in ("M", "m") and getattr(dtype, "name", "") != "bfloat16":
        return _borrow_buffer(call, what, owner)
    # numpy exports no buffer of dates and of types that are not its own.
    borrowed = _borrow_buffer(call, what, owner.view(f"V{dtype.itemsize}"))  # type: ignore[union-attr]
    borrowed.owner = owner
    borrowed.name = "bfloat16" if dtype.name == "bfloat16" else ""  # type: ignore[union-attr]
    return borrowed


def _borrow_array(call: str, what: str, owner: Any) -> Borrowed:
    """The short way for what is passed most; numpy resizes no array that somebody holds."""
    flags = owner.flags
    if not flags.c_contiguous:
        _refuse_layout(call, what)
    got = Borrowed()
    got._view = None
    got.owner, got.address = owner, owner.__array_interface__["data"][0]
    got.shape, got.itemsize, got.nbytes = owner.shape, owner.itemsize, owner.nbytes
    got.name, got.readonly = _ARRAYS[owner.dtype], not flags.writeable
    return got


def _borrow_buffer(call: str, what: str, owner: Any) -> Borrowed:
    if numpy is not None and isinstance(owner, numpy.ma.MaskedArray):
        fix = "pass x.filled(value), or its data and its mask"
        refuse(call, f"{what} is a masked array, whose mask would not come along", fix)
    view = _PyBuffer()
    try:
        _get(owner, ctypes.byref(view), _FULL_RO)
    except (TypeError, BufferError, ValueError) as error:
        refuse(
            call,
            f"{what} is a {type(owner).__name__}, which gives no memory ({error})",
            "pass a numpy array, a torch tensor of the CPU, or an object with a buffer",
        )
    got = Borrowed()
    got._view = view
    form = view.format.decode() if view.format else "B"
    if "O" in re.sub(":[^:]*:", "", form):  # without the names of fields
        refuse(call, f"{what} has Python objects", "pickle them, and send the bytes")
    if not _is_contiguous(ctypes.byref(view), b"C"):
        _refuse_layout(call, what)
    got.owner, got.address = owner, view.buf or 0
    got.shape = tuple(view.shape[i] for i in range(view.ndim)) if view.ndim else ()
    got.itemsize, got.nbytes, got.readonly = view.itemsize, view.len, bool(view.readonly)
    got.name = _name_of(form, view.itemsize)
    return got


def _borrow_tensor(call: str, what: str, owner: Any) -> Borrowed:
    if owner.device.type != "cpu" or str(owner.layout) != "torch.strided":
        fix = "call .cpu(), and .to_dense(), before the call"
        refuse(call, f"{what} is a tensor of {owner.device}, {owner.layout}", fix)
    if not owner.is_contiguous():
        _refuse_layout(call, what)
    if owner.is_conj() or owner.is_neg():
        fix = "pass x.resolve_conj().resolve_neg()"
        refuse(call, f"{what} is a view with another sign than its memory", fix)
    got = Borrowed()
    got._view = None
    got.owner, got.address, got.shape = owner, owner.data_ptr(), tuple(owner.shape)
    got.itemsize, got.readonly = owner.element_size(), False
    got.nbytes = got.elements * got.itemsize
    got.name = str(owner.dtype).removeprefix("torch.")
    return got


def _refuse_layout(call: str, what: str) -> None:
    refuse(
        call,
        f"{what} is not C-contiguous, and weft reads and writes memory in one piece",
        "pass numpy.ascontiguousarray(x), or x.contiguous() of a tensor",
    )


def _name_of(form: str, size: int) -> str:
    """numpy's name of a buffer's format; empty for structures, dates and foreign byte orders."""
    if form[:1] in (">", "!") and size > 1:
        return ""
    code = form.lstrip("@=<>!|")
    if code in _FLOATS:
        return _FLOATS[code]
    if code == "?":
        return "bool"
    if len(code) == 1 and code in "bhilqn":
        return f"int{8 * size}"
    if len(code) == 1 and code in "cBHILQNP":
        return f"uint{8 * size}"
    return ""


def type_named(call: str, name: DataType | str) -> DataType:
    """The element type that a caller asks for: weft.DataType.BFLOAT16 or "bfloat16"."""
    if isinstance(name, DataType):
        return name
    found = _TYPES.get(str(getattr(name, "name", name)))
    if found is None:
        refuse(call, f"dtype {name!r} is no element type", f"one of {', '.join(_TYPES)}")
    return found


def kind_of(call: str, what: str, it: Borrowed, dtype: DataType | str | None, moved: bool) -> Kind:
    """How weft is to take the elements. `moved`: without arithmetic, so that any bytes will do."""
    if dtype is not None:
        return _asked_for(call, what, it, type_named(call, dtype))
    found = _KINDS.get(it.name)
    if found is not None:
        return found
    if moved:
        return Kind(int(DataType.UINT8), 1, it.itemsize)
    refuse(
        call,
        f"{what} has elements of {it.itemsize} bytes of type {it.name or 'unknown to weft'!r}, "
        "which weft does not add or compare",
        f"convert them to one of {', '.join(_TYPES)}, or say dtype=",
    )


def _asked_for(call: str, what: str, it: Borrowed, wanted: DataType) -> Kind:
    size = ITEM_SIZES[wanted]
    if it.itemsize == size or it.itemsize == 1 and it.nbytes % size == 0:
        return Kind(int(wanted), size, 1)
    refuse(
        call,
        f"{what} has {it.nbytes} bytes in elements of {it.itemsize}, not {wanted.name.lower()}s",
        f"pass elements of {size} bytes, or bytes whose number {size} divides",
    )
