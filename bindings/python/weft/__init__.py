# SPDX-License-Identifier: Apache-2.0
"""weft: collective communication for host memory, from Python.

    import numpy, weft

    def work(comm):
        return comm.all_reduce(numpy.arange(3.0) + comm.rank)

    weft.run(work, ranks=4)          # four processes, here; in a notebook, too

or, of a program that mpirun, srun or torchrun started as several processes:

    comm = weft.Communicator.from_environment()
    comm.all_reduce(gradients, out=gradients, op="avg")

The package is ctypes over libweft.so, so one copy works with every Python from 3.11 on and nothing
is compiled when it is installed. The price is some ten microseconds a call: who moves a few bytes
at a time wants C. numpy is used where it is there. Semantics, deadlines and threads are those of weft.h.
"""

import importlib.util

from ._c import DataType, Op, Result
from ._call import How, Options, PreMulSum
from ._version import VERSION
from .communicator import Communicator, MemStats, Settings, algorithms, unique_id
from .errors import (
    Aborted,
    AuthenticationError,
    Error,
    ErrorInfo,
    InvalidArgument,
    InvalidUsage,
    Mismatch,
    OutOfMemory,
    RemoteError,
    Timeout,
)
from .launch import RankError, run
from .memory import empty
from .shared_tensors import use_shared_tensors
from .sharding import Param, Shard, ShardedOptimizer, ShardSettings, StepArgs, StepStats
from .streams import Event, Stream, group
from .torch_hooks import bf16_hook

__version__ = ".".join(map(str, VERSION))

__all__ = [
    "Aborted",
    "AuthenticationError",
    "Communicator",
    "DataType",
    "Error",
    "ErrorInfo",
    "Event",
    "How",
    "InvalidArgument",
    "InvalidUsage",
    "MemStats",
    "Mismatch",
    "Op",
    "Options",
    "OutOfMemory",
    "Param",
    "PreMulSum",
    "RankError",
    "RemoteError",
    "Result",
    "Settings",
    "Shard",
    "ShardSettings",
    "ShardedOptimizer",
    "StepArgs",
    "StepStats",
    "Stream",
    "Timeout",
    "algorithms",
    "bf16_hook",
    "empty",
    "group",
    "run",
    "unique_id",
    "use_shared_tensors",
]


def _arm_torch() -> None:
    """Registers the backend "weft" of torch.distributed, now or when torch is imported."""
    if importlib.util.find_spec(f"{__name__}._torch_door") is not None:
        importlib.import_module(f"{__name__}._torch_door").arm()


_arm_torch()
