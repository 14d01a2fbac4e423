# SPDX-License-Identifier: Apache-2.0
"""Memory that the ranks of a host reach directly, and new arrays for results."""

from __future__ import annotations

import ctypes
import operator
import weakref
from collections.abc import Iterable
from math import prod
from typing import Any

from ._buffers import ITEM_SIZES, Borrowed, numpy, type_named
from ._c import DataType, lib
from .errors import check, refuse

Shape = int | tuple[int, ...]
MOST_ELEMENTS = 2**56  #: of any size, so that the bytes are a number of C


def _allocate(size: int) -> Any:
    pointer = ctypes.c_void_p()
    check(lib.weftMemAlloc(ctypes.byref(pointer), size))
    block = (ctypes.c_char * size).from_address(pointer.value or 0)
    weakref.finalize(block, lib.weftMemFree, pointer.value).atexit = False
    return block


def empty(shape: Shape, dtype: Any = "float32") -> Any:
    """An array in memory of weftMemAlloc: zeroed, and fastest in collectives.

    Where all ranks of a call pass such arrays, these are read and written in place. It is freed
    with the last array, view or buffer of it. Without numpy it is a memoryview of bytes.
    `dtype` is a numpy type, or the name of one of weft's: "bfloat16" gives numpy.uint16.

    >>> import weft
    >>> weft.empty((2, 3), "float64").shape
    (2, 3)
    """
    shape = _shape(shape)
    if numpy is None:
        size = prod(shape) * ITEM_SIZES[type_named("empty", dtype)]
        return memoryview(_allocate(size) if size else bytearray()).cast("B")
    kind = _numpy_type(dtype)
    size = prod(shape) * kind.itemsize
    if size == 0:
        return numpy.empty(shape, kind)
    return numpy.frombuffer(_allocate(size), kind).reshape(shape)


def _shape(shape: Any) -> tuple[int, ...]:
    """One number is that of a single axis."""
    try:
        axes = tuple(map(operator.index, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        axes = (-1,)
    if min(axes, default=0) < 0:
        refuse("empty", f"shape is {shape!r}", "pass whole numbers from 0 on")
    if prod(axes) > MOST_ELEMENTS:
        refuse("empty", f"shape is {shape!r}, more than an address space has", "pass a smaller one")
    return axes


def _numpy_type(dtype: Any) -> Any:
    if isinstance(dtype, DataType):
        dtype = dtype.name.lower()
    if isinstance(dtype, str) and dtype == "bfloat16":
        dtype = "uint16"
    try:
        kind = numpy.dtype(dtype)
    except TypeError as error:
        refuse("empty", f"dtype is {dtype!r} ({error})", "pass a type of numpy, or bfloat16")
    if kind.hasobject:
        refuse("empty", "dtype is of Python objects", "pass a type of numbers or bytes")
    return kind


def like(it: Borrowed, shape: tuple[int, ...]) -> Any:
    """A new array of the same elements, of the same library as `it`."""
    owner = it.owner
    if hasattr(owner, "new_empty"):
        return owner.new_empty(shape)
    if hasattr(owner, "dtype") and numpy is not None:
        return numpy.empty(shape, owner.dtype)
    made = memoryview(bytearray(prod(shape) * it.itemsize))
    form = memoryview(owner).format
    try:
        return made.cast(form, shape)
    except (ValueError, TypeError):  # a structure, or an empty shape: its bytes
        return made
