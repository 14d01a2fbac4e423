# SPDX-License-Identifier: Apache-2.0
"""Memory that the ranks of a host reach directly, and new arrays for results."""

from __future__ import annotations

import ctypes
import weakref
from math import prod
from typing import Any

from ._buffers import ITEM_SIZES, Borrowed, numpy, type_named
from ._c import DataType, lib
from .errors import check, refuse

Shape = int | tuple[int, ...]


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
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if min(shape, default=0) < 0:
        refuse("empty", f"shape is {shape}", "pass numbers from 0 on")
    if numpy is None:
        size = prod(shape) * ITEM_SIZES[type_named("empty", dtype)]
        return memoryview(_allocate(size) if size else bytearray()).cast("B")
    if dtype in ("bfloat16", DataType.BFLOAT16):
        dtype = "uint16"
    kind = numpy.dtype(dtype.name.lower() if isinstance(dtype, DataType) else dtype)
    size = prod(shape) * kind.itemsize
    if size == 0:
        return numpy.empty(shape, kind)
    return numpy.frombuffer(_allocate(size), kind).reshape(shape)


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
