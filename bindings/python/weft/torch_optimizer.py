# SPDX-License-Identifier: Apache-2.0
"""The sharded optimizer for torch's parameters. Imported on demand: it is what needs torch.

Parameters and gradients move into the optimizer's memory when it is made. Hooks tell it of each
gradient that is complete, so buckets are reduced while backward still runs; step() waits for the
new parameters.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, NoReturn

import torch

from .communicator import Communicator
from .errors import misuse, refuse
from .sharding import Micro, Param, Shard, ShardSettings, StepStats, sorted_out


class TorchOptimizer(torch.optim.Optimizer):
    """Made by weft.ShardedOptimizer(model.parameters(), "adamw", comm=comm, lr=1e-3).

    A torch.optim.Optimizer for a model that is not wrapped in DDP: gradients are averaged over the
    ranks here. Parameters may come as named_parameters() (checkpoints then have the names) or as
    groups with "weight_decay": 0; the learning rate is one for all, and schedulers may change it.
    All ranks begin with rank 0's parameters. Buffers, such as running means, are not touched.

    Around all backward passes of a step but the last stands ``with optimizer.accumulate():``.
    Clipping is `clip_norm`; zero_grad() is not needed and does nothing. Of sharded parameters
    (``degrees="zero3"``) all are gathered by step(); what is saved is state and gradients.
    """

    def __init__(
        self, params: Any, optimizer: str = "adamw", *, comm: Communicator | None = None, **how: Any
    ) -> None:
        self._args, settings = sorted_out({"weight_decay": 0.01, **how})
        groups, names = _named(params)
        super().__init__(groups, {"lr": self._args.lr, "weight_decay": self._args.weight_decay})
        self._params = [p for group in self.param_groups for p in group["params"]]
        settings.setdefault("dtype", _type_of(self._params))
        described = [
            Param(names.get(p, f"param{i}"), tuple(p.shape), not p.requires_grad, decays)
            for i, (p, decays) in enumerate(self._decaying())
        ]
        self._comm = comm or Communicator.from_environment()
        self.shard = Shard(self._comm, described, ShardSettings(optimizer, **settings))
        self._trained = [i for i, p in enumerate(self._params) if p.requires_grad]
        self._micro = Micro(self.shard, self._trained)
        self._accumulating = False
        self.stats: StepStats | None = None  #: of the last step
        self._gradients = [self._move(i) for i in range(len(self._params))]
        self.shard.start()
        self._nodes = [self._hook(i) for i in self._trained]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Waits for the step that backward() began, and for the new parameters."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._micro.now is None and not self._micro.complete:
            self._begin()  # gradients that came without a backward
        if self._micro.now is not None:
            self._take_foreign(n for n in self._trained if n not in self._micro.now.ready)
            self._micro.end()
        self.stats = self._micro.step()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Does nothing: the gradients are zeroed once they are taken."""

    @contextmanager
    def accumulate(self) -> Iterator[None]:
        """Backward passes inside add to the gradients of a step whose last backward is outside."""
        self._accumulating = True
        try:
            yield
            self._micro.end()
        finally:
            self._accumulating = False

    def save(self, folder: Any, meta: Any = None, wait: bool = True) -> None:
        """A checkpoint of parameters and state in a folder that all ranks see; collective."""
        self.shard.save(folder, meta, wait)

    def load(self, folder: Any) -> Any:
        """The last checkpoint of a folder, of any number of ranks; returns its meta. Collective."""
        return self.shard.load(folder)

    def export(self, file: Any, full_precision: bool = False) -> None:
        """The whole model as one file; collective.

        It is of torch.save's form where its name ends with .pt, .pth or .bin: torch.load() gives a
        state_dict. All others are .safetensors.
        """
        if os.path.splitext(file)[1] not in (".pt", ".pth", ".bin"):
            self.shard.export(file, full_precision)
            return
        aside = f"{os.fspath(file)}.safetensors.tmp"
        self.shard.export(aside, full_precision)
        try:
            if self._comm.rank == 0:
                _convert(aside, os.fspath(file))
        finally:
            self._comm.barrier()

    def state_dict(self) -> NoReturn:  # type: ignore[override]
        misuse("state_dict", "the state is sharded over the ranks", "call save(folder) on all")

    def load_state_dict(self, state_dict: Any) -> NoReturn:
        misuse("load_state_dict", "the state is sharded over the ranks", "call load(folder) on all")

    # ---- Memory and hooks -----------------------------------------------------------------------

    def _decaying(self) -> Iterator[tuple[torch.nn.Parameter, bool]]:
        decay = self._args.weight_decay
        for group in self.param_groups:
            if group["weight_decay"] not in (0, decay):
                fix = f"{decay:g} or 0 in every group"
                refuse("ShardedOptimizer", f"a weight_decay of {group['weight_decay']}", fix)
            for param in group["params"]:
                yield param, group["weight_decay"] != 0 or decay == 0

    def _move(self, number: int) -> torch.Tensor | None:
        """Puts a parameter, and its gradient, where the shard has room for them."""
        param = self._params[number]
        weights, gradient = (
            None if block is None else torch.frombuffer(block, dtype=param.dtype).view(param.shape)
            for block in self.shard.memory(number)
        )
        assert weights is not None
        weights.copy_(param.detach())
        param.data = weights
        param.grad = gradient
        return gradient

    def _hook(self, number: int) -> Any:
        """Before and after a gradient is accumulated. The node must be held, or it is made anew."""
        param = self._params[number]
        param.register_hook(partial(self._comes, number))
        node = param.expand_as(param).grad_fn.next_functions[0][0]
        node.register_hook(partial(self._came, number))
        return node

    def _comes(self, number: int, _: torch.Tensor) -> None:
        """The first gradient of a backward pass begins it, before it is written."""
        now = self._micro.now
        if now is not None and number in now.ready:
            self._micro.end()
        if self._micro.now is None:
            self._begin()
        self._restore(number)

    def _came(self, number: int, *_: Any) -> None:
        assert self._micro.now is not None
        self._take_foreign([number])
        self._micro.ready(number)

    def _begin(self) -> None:
        rates = {group["lr"] for group in self.param_groups}
        if len(rates) != 1:
            misuse("step", f"groups have learning rates {sorted(rates)}", "give all the same")
        self._micro.begin(replace(self._args, lr=float(rates.pop())), not self._accumulating)

    def _restore(self, number: int) -> None:
        """Somebody may have set the gradient to None: then it is the shard's again."""
        if self._params[number].grad is None:
            self._params[number].grad = self._gradients[number]

    def _take_foreign(self, numbers: Iterable[int]) -> None:
        """A gradient that lies elsewhere is copied to where the shard takes it from."""
        for number in numbers:
            param, own = self._params[number], self._gradients[number]
            assert own is not None
            if param.grad is not None and param.grad.data_ptr() != own.data_ptr():
                own.copy_(param.grad)
                param.grad = own
            self._restore(number)


def _convert(safetensors: str, file: str) -> None:
    """The one becomes the other, which is whole or not there."""
    try:
        torch.save(_read(safetensors), file + ".tmp")
        os.replace(file + ".tmp", file)
    finally:
        for path in (safetensors, file + ".tmp"):
            with suppress(FileNotFoundError):
                os.remove(path)


def _read(safetensors: str) -> dict[str, torch.Tensor]:
    """By name; in memory of the file's own."""
    types = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
    with open(safetensors, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entries = json.loads(file.read(length))
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    tensors = {}
    for name, entry in entries.items():
        if name != "__metadata__":
            elements, offset = prod(entry["shape"]), 8 + length + entry["data_offsets"][0]
            flat = torch.frombuffer(data, dtype=types[entry["dtype"]], count=elements, offset=offset)
            tensors[name] = flat.view(entry["shape"])
    return tensors


def _named(params: Any) -> tuple[list, dict[torch.nn.Parameter, str]]:
    """What torch.optim takes, and names where they were given."""
    groups = list(params)
    if groups and isinstance(groups[0], tuple):
        return [p for _, p in groups], {p: name for name, p in groups}
    return groups, {}


def _type_of(params: list[torch.nn.Parameter]) -> str:
    """The one type that all have."""
    for p in params:
        if p.device.type != "cpu":
            refuse("ShardedOptimizer", f"a parameter is on {p.device}", "move the model to the cpu")
    types = sorted({str(p.dtype).removeprefix("torch.") for p in params})
    if len(types) != 1 or types[0] not in ("float32", "float16", "bfloat16"):
        fix = "convert the model to float32, float16 or bfloat16"
        refuse("ShardedOptimizer", f"parameters have types {', '.join(types)}", fix)
    return types[0]
