# SPDX-License-Identifier: Apache-2.0
"""shard.h for ctypes: its enumerators, structures and functions, compared with the header by a test."""

from __future__ import annotations

import ctypes
import enum
from ctypes import POINTER, Structure, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint
from ctypes import c_uint64, c_void_p

from ._c import DataType, VERSION_CODE, declare, lib

MAGIC = 0x73686172
PARAM_FROZEN = 1
PARAM_NO_DECAY = 2
PARAM_COPY = 4
PARAM_SPLIT = 8


class Optimizer(enum.IntEnum):
    """What steps the parameters: ``weftOptimizer_t``."""

    ADAM_W = 0
    LAMB = 1
    SGD = 2
    CUSTOM = 3
    LANS = 4


class Rounding(enum.IntEnum):
    """Of weights to 16-bit parameters: ``weftRounding_t``."""

    NEAREST = 0
    STOCHASTIC = 1


class Param(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("elements", c_size_t),
        ("flags", c_uint),
        ("tiedTo", c_int),
        ("shape", POINTER(c_size_t)),
        ("dimensions", c_int),
    ]


class ShardConfig(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("magic", c_uint),
        ("version", c_uint),
        ("paramDegree", c_int),
        ("gradDegree", c_int),
        ("stateDegree", c_int),
        ("paramType", c_int),
        ("gradType", c_int),
        ("wireType", c_int),
        ("optimizer", c_int),
        ("beta1", c_double),
        ("beta2", c_double),
        ("epsilon", c_double),
        ("momentum", c_double),
        ("nesterov", c_int),
        ("lambOnAll", c_int),
        ("custom", c_void_p),
        ("user", c_void_p),
        ("master", c_int),
        ("rounding", c_int),
        ("seed", c_uint64),
        ("bucketElements", c_size_t),
        ("reproducible", c_int),
        ("eager", c_int),
        ("parts", c_void_p),
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(ShardConfig), MAGIC, VERSION_CODE, 1, 1, 0)
        self.paramType = self.gradType = self.wireType = DataType.BFLOAT16
        self.beta1, self.beta2, self.epsilon, self.master = 0.9, 0.999, 1e-8, 1


class ShardInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("buckets", c_int),
        ("elements", c_size_t),
        ("paddedElements", c_size_t),
        ("ownElements", c_size_t),
        ("bytes", c_size_t),
        ("wireBytes", c_uint64),
        ("steps", c_int64),
        ("fingerprint", c_uint64),
    ]


class StepArgs(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("magic", c_uint),
        ("version", c_uint),
        ("boundary", c_int),
        ("learningRate", c_double),
        ("weightDecay", c_double),
        ("clipNorm", c_double),
        ("lossScale", c_double),
        ("divisor", c_double),
        ("skipNonFinite", c_int),
        ("microSteps", c_int),
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(StepArgs), MAGIC, VERSION_CODE, 1, 1e-3, 0, 0, 1, 0, 1)


class StepStats(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("gradientNorm", c_double),
        ("clip", c_double),
        ("nonFinite", c_uint64),
        ("skipped", c_int),
        ("badParam", c_int),
        ("badRank", c_int),
        ("exposedSeconds", c_double),
        ("badPart", c_int),
    ]


_shard = c_void_p

SIGNATURES: dict[str, list] = {
    "weftShardCreate": [
        POINTER(c_void_p),
        c_void_p,
        POINTER(Param),
        c_size_t,
        POINTER(ShardConfig),
    ],
    "weftShardDestroy": [_shard],
    "weftShardAbort": [_shard],
    "weftShardBuffers": [_shard, c_size_t, POINTER(c_void_p), POINTER(c_void_p)],
    "weftShardBucket": [_shard, c_size_t, POINTER(c_int)],
    "weftShardInfo": [_shard, POINTER(ShardInfo)],
    "weftShardStart": [_shard, c_int],
    "weftShardSetWeights": [_shard, c_size_t, POINTER(c_float)],
    "weftStepBegin": [_shard, POINTER(StepArgs)],
    "weftGradReady": [_shard, c_size_t],
    "weftGradDone": [_shard],
    "weftParamWait": [_shard, c_int],
    "weftParamPrefetch": [_shard, c_int],
    "weftParamRelease": [_shard, c_int],
    "weftStepWait": [_shard, POINTER(StepStats)],
    "weftShardSave": [_shard, c_char_p, c_char_p, c_int],
    "weftShardSaveWait": [_shard],
    "weftShardLoad": [_shard, c_char_p, c_char_p, c_size_t],
    "weftShardLoadWeights": [_shard, c_char_p, c_char_p, c_size_t],
    "weftShardExport": [_shard, c_char_p, c_int],
    "weftShardReshard": [_shard, _shard],
}
declare(lib, SIGNATURES)
