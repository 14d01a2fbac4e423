# SPDX-License-Identifier: Apache-2.0
"""The sharded optimizer for parameters that are numpy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy

from .communicator import Communicator
from .errors import refuse
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
        first = {name: numpy.asarray(array) for name, array in params.items()}
        if "dtype" not in settings:
            settings["dtype"] = _type_of(first)
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
        self._micro.ready(self._numbers[name])

    def step(self, gradients: Mapping[str, Any] | None = None) -> StepStats:
        """Waits for the new weights. `gradients` spares a backward() that copies them."""
        if gradients is not None:
            with self.backward():
                for name, gradient in gradients.items():
                    self.gradients[name] += gradient
        return self._micro.step()


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
