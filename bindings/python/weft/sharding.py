# SPDX-License-Identifier: Apache-2.0
"""The sharded optimizer of shard.h: what lies between a backward pass and the next forward pass.

Gradients of all ranks are summed, clipped, the optimizer steps, and all ranks get the new
parameters, with parameters, gradients and optimizer state sharded over as many ranks as you say.
ShardedOptimizer makes one for torch's parameters or for numpy's arrays; Shard is below both.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import operator
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from ctypes import byref, c_void_p
from dataclasses import dataclass, field
from math import prod
from typing import Any

from . import _shard_c
from ._arguments import fill, text, whole
from ._buffers import ITEM_SIZES, type_named
from ._c import DataType, lib
from ._shard_c import Optimizer, Rounding
from .communicator import Communicator
from .errors import check, misuse, refuse
from .memory import MOST_ELEMENTS

#: Into how many ranks parameters, gradients and state are sharded; 0 is all of them.
DEGREES = {"data": (1, 1, 1), "zero1": (1, 1, 0), "zero2": (1, 0, 0), "zero3": (0, 0, 0)}
_OPTIMIZERS = {
    "adamw": Optimizer.ADAM_W,
    "lamb": Optimizer.LAMB,
    "lans": Optimizer.LANS,
    "sgd": Optimizer.SGD,
}
_META_BYTES = 1 << 20
#: What is called otherwise in shard.h.
_CONFIG_FIELDS = {"eps": "epsilon", "momentum": "momentum", "nesterov": "nesterov", "seed": "seed"}
_CONFIG_FIELDS |= {"lamb_on_all": "lambOnAll", "master": "master", "reproducible": "reproducible"}
_CONFIG_FIELDS |= {"bucket_elements": "bucketElements"}
_STEP_FIELDS = {"lr": "learningRate", "weight_decay": "weightDecay", "clip_norm": "clipNorm"}
_STEP_FIELDS |= {"loss_scale": "lossScale", "divisor": "divisor", "micro_steps": "microSteps"}
_STEP_FIELDS |= {"skip_non_finite": "skipNonFinite"}


@dataclass(frozen=True)
class Param:
    """One tensor, in order of first use in forward."""

    name: str  #: unique; what checkpoints and errors call it
    shape: tuple[int, ...]
    frozen: bool = False  #: not trained
    decays: bool = True  #: weight decay applies


@dataclass(frozen=True)
class ShardSettings:
    """The same on all ranks. `degrees` is a name of DEGREES or three numbers, (4, 4, 4) for MiCS."""

    optimizer: str = "adamw"
    degrees: str | tuple[int, int, int] = "zero1"
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    momentum: float = 0.0
    nesterov: bool = False
    lamb_on_all: bool = False
    dtype: DataType | str = DataType.FLOAT32  #: of parameters and gradients
    wire: DataType | str | None = None  #: in which gradients travel; None: as dtype
    master: bool = True  #: fp32 weights beside 16-bit parameters
    stochastic: bool = False  #: rounding of weights to 16-bit parameters
    seed: int = 0  #: of that
    bucket_elements: int = 0  #: 0: 4 Mi
    reproducible: bool = False  #: the same bits for any number of ranks at equal global batch

    def as_c(self) -> _shard_c.ShardConfig:
        call, config = "ShardedOptimizer", _shard_c.ShardConfig()
        degrees = _degrees(call, self.degrees)
        if self.optimizer not in _OPTIMIZERS:
            refuse(call, f"optimizer {self.optimizer!r} is unknown", "adamw, lamb, lans or sgd")
        config.paramDegree, config.gradDegree, config.stateDegree = degrees
        config.optimizer = _OPTIMIZERS[self.optimizer]
        config.beta1, config.beta2 = _pair(call, self.betas)
        fill(call, config, _CONFIG_FIELDS, self)
        config.paramType = config.gradType = type_named(call, self.dtype)
        config.wireType = type_named(call, self.dtype if self.wire is None else self.wire)
        config.rounding = Rounding.STOCHASTIC if self.stochastic else Rounding.NEAREST
        return config


def _degrees(call: str, asked: Any) -> list[int]:
    """Three numbers, or the name of these."""
    three = DEGREES.get(asked) if isinstance(asked, str) else asked
    if not isinstance(three, Sequence) or len(three) != 3:
        fix = f"one of {', '.join(DEGREES)}, or three numbers"
        refuse(call, f"degrees {asked!r} is unknown", fix)
    return [whole(call, "degrees", degree) for degree in three]


def _pair(call: str, betas: Any) -> tuple[float, float]:
    try:
        first, second = map(float, betas)
    except (TypeError, ValueError):
        refuse(call, f"betas is {betas!r}", "pass two numbers, such as (0.9, 0.999)")
    return first, second


@dataclass
class StepArgs:
    """Of one step; the same on all ranks."""

    lr: float = 1e-3
    weight_decay: float = 0.0
    clip_norm: float = 0.0  #: largest norm of the averaged gradients; 0: any
    loss_scale: float = 1.0  #: what the loss was multiplied with
    divisor: float = 0.0  #: of the sum of gradients; 0: the number of ranks
    skip_non_finite: bool = True  #: no update if a gradient is infinite or NaN
    micro_steps: int = 0  #: of a rank in a step, for reproducible steps of no power of two of them

    def as_c(self, boundary: bool) -> _shard_c.StepArgs:
        args = _shard_c.StepArgs()
        args.boundary = boundary
        fill("ShardedOptimizer", args, _STEP_FIELDS, self)
        return args


@dataclass(frozen=True)
class StepStats:
    """What happened in a step."""

    gradient_norm: float  #: of the averaged gradients, before clipping; the same on all ranks
    clip: float  #: what they were multiplied with
    non_finite: int  #: infinite or NaN among the sums
    skipped: bool  #: nothing was updated
    bad_param: str | None  #: the first that was not finite
    bad_rank: int | None  #: who brought it
    exposed_seconds: float  #: waited for since the step before


class _Handle:
    """A weftShard_t. The arrays in its memory hold it, so it ends after the last of them."""

    def __init__(self, value: int | None) -> None:
        self.value = value
        _open.add(self)

    def close(self) -> None:
        value, self.value = self.value, None
        if value is not None:
            lib.weftShardDestroy(value)

    def __del__(self) -> None:
        self.close()


_open: weakref.WeakSet[_Handle] = weakref.WeakSet()


class Shard:
    """shard.h with parameters by number. Collective, and one thread at a time."""

    def __init__(
        self, comm: Communicator, params: Sequence[Param], settings: ShardSettings
    ) -> None:
        self.params, self.settings = list(params), settings
        described, self._held = _describe(self.params)
        handle, config = c_void_p(), settings.as_c()
        if not isinstance(comm, Communicator):
            refuse("ShardedOptimizer", f"comm is {comm!r}", "pass a weft.Communicator")
        made = lib.weftShardCreate(
            byref(handle), comm.handle, described, len(self.params), byref(config)
        )
        comm._check(made, "ShardedOptimizer")
        self._handle = _Handle(handle.value)
        self.item_size = ITEM_SIZES[DataType(config.paramType)]
        self.gathers = config.paramDegree != 1  # parameters are sharded

    def memory(self, number: int) -> tuple[Any, Any]:
        """The buffers of a parameter's weights and gradient (None if frozen), which never move."""
        weights, gradient = c_void_p(), c_void_p()
        self._call(lib.weftShardBuffers, number, byref(weights), byref(gradient))
        return self._block(number, weights), self._block(number, gradient)

    def start(self, root: int = 0) -> None:
        """Takes the weights in the buffers, after root's have gone to all; -1: they are alike."""
        self._call(lib.weftShardStart, whole("start", "root", root))
        self.gather()

    def begin(self, args: StepArgs, boundary: bool = True) -> None:
        """Before the first gradient is written."""
        self._call(lib.weftStepBegin, byref(args.as_c(boundary)))

    def ready(self, number: int) -> None:
        """The gradient of this parameter is complete. Never waits."""
        self._call(lib.weftGradReady, number)

    def done(self) -> None:
        """All gradients are. Never waits."""
        self._call(lib.weftGradDone)

    def wait(self) -> StepStats:
        """The end of a step; afterwards all parameters are there."""
        got = _shard_c.StepStats(ctypes.sizeof(_shard_c.StepStats))
        self._call(lib.weftStepWait, byref(got))
        self.gather()
        name = self.params[got.badParam].name if got.badParam >= 0 else None
        rank = got.badRank if got.badRank >= 0 else None
        return StepStats(
            got.gradientNorm,
            got.clip,
            got.nonFinite,
            bool(got.skipped),
            name,
            rank,
            got.exposedSeconds,
        )

    def gather(self) -> None:
        """Sharded parameters come from where they are; others are here."""
        if self.gathers:
            for bucket in reversed(range(self.info().buckets)):
                self._call(lib.weftParamWait, bucket)

    def info(self) -> _shard_c.ShardInfo:
        """Sizes, steps and bytes: weftShardInfo_t."""
        info = _shard_c.ShardInfo(ctypes.sizeof(_shard_c.ShardInfo))
        self._call(lib.weftShardInfo, byref(info))
        return info

    def save(self, folder: Any, meta: Any = None, wait: bool = True) -> None:
        """A checkpoint in a folder that all ranks see; `meta` is what json can write."""
        text = None if meta is None else json.dumps(meta).encode()
        self._call(lib.weftShardSave, os.fsencode(folder), text, not wait)

    def save_wait(self) -> None:
        """Until a save without wait is on disk; raises its error."""
        self._call(lib.weftShardSaveWait)

    def load(self, folder: Any, weights_alone: bool = False) -> Any:
        """The last checkpoint of a folder, of any number of ranks and degrees; returns its meta.

        With weights_alone it may be of any optimizer, whose state then begins anew.
        """
        load = lib.weftShardLoadWeights if weights_alone else lib.weftShardLoad
        size = _META_BYTES
        while True:
            meta = ctypes.create_string_buffer(size)
            self._call(load, os.fsencode(folder), meta, size)
            if len(meta.value) < size - 1:
                break
            size *= 8  # it was cut; that of all ranks, which read the same
        self.gather()
        return json.loads(meta.value) if meta.value else None

    def export(self, file: Any, full_precision: bool = False) -> None:
        """The whole model as one .safetensors file, which other tools open."""
        self._call(lib.weftShardExport, os.fsencode(file), full_precision)
        self.gather()

    def abort(self) -> None:
        """From any thread: what is in flight, here and on the peers, raises Aborted."""
        self._call(lib.weftShardAbort)

    def _call(self, function: Any, *arguments: Any) -> None:
        check(function(self._handle.value, *arguments))

    def _block(self, number: int, address: c_void_p) -> Any:
        if not address.value:
            return None
        size = prod(self.params[number].shape) * self.item_size
        block: Any = (ctypes.c_char * size).from_address(address.value)
        block.handle = self._handle
        return block


def _describe(params: Sequence[Param]) -> tuple[Any, list]:
    """weftParam_t[], and what it points to."""
    if not params:
        misuse("ShardedOptimizer", "no parameters", "pass at least one")
    described, held = (_shard_c.Param * len(params))(), []
    for each, param in zip(described, params):
        sizes = _shape(param)
        shape = (ctypes.c_size_t * len(sizes))(*sizes)
        each.name = text("ShardedOptimizer", "a parameter's name", param.name)
        each.elements = prod(sizes)
        each.flags = param.frozen * _shard_c.PARAM_FROZEN
        each.flags |= (not param.decays) * _shard_c.PARAM_NO_DECAY
        each.tiedTo, each.dimensions = -1, len(sizes)
        each.shape = shape
        held.append(shape)
    return described, held


def _shape(param: Param) -> list[int]:
    """A scalar is one element."""
    try:
        sizes = [operator.index(size) for size in param.shape] or [1]
    except TypeError:
        sizes = [0]
    if min(sizes) < 1 or prod(sizes) > MOST_ELEMENTS:
        fix = "pass whole numbers from 1 on, whose product is in memory"
        refuse("ShardedOptimizer", f"parameter {param.name!r} has the shape {param.shape!r}", fix)
    return sizes


@atexit.register
def _close_all() -> None:
    for handle in list(_open):
        handle.close()


@dataclass
class _Progress:
    """Where a micro-step is: which gradients are ready, and whether it ends with a step."""

    boundary: bool
    ready: set[int] = field(default_factory=set)


class Micro:
    """The order of calls of micro-steps over a Shard; the same for arrays and tensors."""

    def __init__(self, shard: Shard, trained: Sequence[int]) -> None:
        self.shard, self.trained = shard, list(trained)
        self.now: _Progress | None = None
        self.complete = False  # the last backward before a step is over

    def begin(self, args: StepArgs, boundary: bool) -> None:
        """A backward pass begins."""
        if self.complete:
            misuse(
                "backward",
                "the gradients of this step are complete already",
                "call step() first, or accumulate() around all backward passes but the last",
            )
        self.shard.begin(args, boundary)
        self.now = _Progress(boundary)

    def ready(self, number: int) -> None:
        """A gradient is complete; with the last one the backward pass is."""
        if self.now is None:
            misuse("ready", "no backward pass is under way", "call it inside backward()")
        self.shard.ready(number)
        self.now.ready.add(number)
        if len(self.now.ready) == len(self.trained):
            self._finish()

    def end(self) -> None:
        """The backward pass is over: parameters that it did not reach have no gradient."""
        while self.now is not None:
            self.ready(next(n for n in self.trained if n not in self.now.ready))

    def step(self) -> StepStats:
        """Waits for the step that the last backward pass began."""
        self.complete = False
        return self.shard.wait()

    def _finish(self) -> None:
        self.complete, self.now = self.now is not None and self.now.boundary, None
        self.shard.done()


def ShardedOptimizer(params: Any, optimizer: str = "adamw", **how: Any) -> Any:  # noqa: N802
    """An optimizer whose state, and more if `degrees` say so, is sharded over the ranks.

    For torch's parameters it is weft.torch_optimizer.TorchOptimizer, a torch.optim.Optimizer; for
    a dict of numpy arrays it is weft.array_optimizer.ArrayOptimizer. Both take, by name, ``comm``
    (default: from_environment()), the fields of StepArgs (``lr=``, ``weight_decay=``,
    ``clip_norm=`` ...) and those of ShardSettings (``degrees=``, ``betas=``, ``wire=`` ...).
    """
    if isinstance(params, Mapping):
        from .array_optimizer import ArrayOptimizer

        return ArrayOptimizer(params, optimizer, **how)
    if not isinstance(params, Iterable):
        fix = "pass model.parameters(), or a dict of numpy arrays"
        refuse("ShardedOptimizer", f"params is {params!r}", fix)
    from .torch_optimizer import TorchOptimizer

    return TorchOptimizer(params, optimizer, **how)


def sorted_out(how: dict[str, Any]) -> tuple[StepArgs, dict[str, Any]]:
    """Options by name: those of steps, and those of ShardSettings."""
    steps = {name: how.pop(name) for name in StepArgs.__dataclass_fields__ if name in how}
    unknown = how.keys() - ShardSettings.__dataclass_fields__.keys()
    if unknown:
        names = sorted({*StepArgs.__dataclass_fields__, *ShardSettings.__dataclass_fields__})
        raise TypeError(
            f"ShardedOptimizer() has no option {', '.join(sorted(unknown))}; "
            f"it has {', '.join(names)}"
        )
    return StepArgs(**steps), how
