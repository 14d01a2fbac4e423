# SPDX-License-Identifier: Apache-2.0
"""The sharded optimizer for parameters that are numpy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy

from ._buffers import ITEM_SIZES, type_named
from .communicator import Communicator
from .errors import misuse, refuse
from .sharding import Micro, Param, Shard, ShardSettings, StepStats, sorted_out


class ArrayOptimizer:
    """Made by weft.ShardedOptimizer({"w": w, "b": b}, "adamw", comm=comm, lr=1e-3).

    `weights` and `gradients` are arrays in the optimizer's own memory, by name: compute with these.
    The arrays that are passed give shapes and first values, which are those of rank 0 for all.
    `no_decay` names those that weight decay leaves alone. Checkpoints are those of `shard`:
    optimizer.shard.save(folder), .load(folder), .export(file).

    >>> import numpy, weft
    >>> def train(comm):
    ...     optimizer = weft.ShardedOptimizer({"w": numpy.ones(4, "f4")}, "sgd", comm=comm, lr=0.5)
    ...     with optimizer.backward():
    ...         optimizer.gradients["w"] += comm.rank + 1
    ...     optimizer.step()
    ...     return optimizer.weights["w"].tolist()
    >>> weft.run(train, ranks=2)
    [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        optimizer: str = "adamw",
        *,
        comm: Communicator | None = None,
        no_decay: tuple[str, ...] = (),
        **how: Any,
    ) -> None:
        self.args, settings = sorted_out(how)
        if not params:
            misuse("ShardedOptimizer", "no parameters", "pass at least one")
        first = {name: numpy.asarray(array) for name, array in params.items()}
        if "dtype" not in settings:
            settings["dtype"] = _type_of(first)
        _check(first, settings["dtype"], no_decay)
        described = [
            Param(name, array.shape, decays=name not in no_decay) for name, array in first.items()
        ]
        comm = comm or Communicator.from_environment()
        self.shard = Shard(comm, described, ShardSettings(optimizer, **settings))
        self._micro = Micro(self.shard, range(len(described)))
        self.weights: dict[str, numpy.ndarray] = {}
        self.gradients: dict[str, numpy.ndarray] = {}
        for number, (name, array) in enumerate(first.items()):
            self.weights[name], self.gradients[name] = (
                numpy.frombuffer(block, array.dtype).reshape(array.shape)
                for block in self.shard.memory(number)
            )
            self.weights[name][...] = array
        self._numbers = {name: number for number, name in enumerate(first)}
        self.shard.start()

    @contextmanager
    def backward(self, last: bool = True) -> Iterator[ArrayOptimizer]:
        """Gradients are added to `gradients` inside; ``last=False``: more follow before step().

        ready(name) inside begins to reduce what is complete."""
        self._micro.begin(self.args, last)
        yield self
        self._micro.end()

    def ready(self, name: str) -> None:
        """This gradient is complete; the others are at the end of backward()."""
        self._micro.ready(self._number("ready", name))

    def step(self, gradients: Mapping[str, Any] | None = None) -> StepStats:
        """Waits for the new weights. `gradients` spares a backward() that copies them."""
        if gradients is not None:
            with self.backward():
                for name, gradient in gradients.items():
                    self._number("step", name)
                    self.gradients[name] += gradient
        return self._micro.step()

    def _number(self, call: str, name: str) -> int:
        if name not in self._numbers:
            refuse(call, f"no parameter is {name!r}", f"one of {', '.join(self._numbers)}")
        return self._numbers[name]


def _check(arrays: Mapping[str, numpy.ndarray], dtype: Any, no_decay: Any) -> None:
    """That arrays have elements of this size, and that all is there of which weights do not decay."""
    call, size = "ShardedOptimizer", ITEM_SIZES[type_named("ShardedOptimizer", dtype)]
    for name, array in arrays.items():
        if array.itemsize != size:
            fix = f"pass arrays whose elements have {size} bytes: of bfloat16, numpy.uint16"
            refuse(call, f"{name!r} is of {array.dtype.name}, and dtype is {dtype!r}", fix)
    lacking = [no_decay] if isinstance(no_decay, str) else sorted(set(no_decay) - arrays.keys())
    if lacking:
        fix = f"a tuple of names of parameters: {', '.join(map(str, arrays))}"
        refuse(call, f"no_decay has {', '.join(map(repr, lacking))}", fix)


def _type_of(arrays: Mapping[str, numpy.ndarray]) -> str:
    """The one type that all have."""
    types = sorted({array.dtype.name for array in arrays.values()})
    if len(types) != 1 or types[0] not in ("float32", "float16"):
        refuse(
            "ShardedOptimizer",
            f"the arrays have types {', '.join(types)}",
            "pass arrays of float32 or of float16, or uint16 with dtype='bfloat16'",
        )
    return types[0]
