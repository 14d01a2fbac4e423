# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors in memory that the ranks of a host share."""

from __future__ import annotations

import importlib
import sys

from ._arguments import SIZE_MAX, whole


def use_shared_tensors(least_bytes: int = 65536) -> None:
    """From now on PyTorch's CPU tensors of at least so many bytes lie in memory that ranks share.

    Where all ranks of a call pass such tensors, collectives read and write them in place: those of
    all_reduce, DDP's buckets. Call it before the model is made; tensors that exist stay where they
    are. Smaller ones, and those for which there is no room, come from PyTorch's allocator. It cannot
    be undone, but called again with another size. docs/pytorch.md says what forked children see.
    """
    least_bytes = whole("use_shared_tensors", "least_bytes", least_bytes, 1, SIZE_MAX)
    try:
        importlib.import_module("torch")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"use_shared_tensors: {sys.executable} has no PyTorch; fix: start a Python that has it "
            "(Debian: python3-torch, /usr/bin/python3)",
            name="torch",
        ) from error
    door = importlib.import_module(f"{__package__}._torch_door")
    door.extension().use_shared_tensors(least_bytes)
