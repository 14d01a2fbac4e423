# SPDX-License-Identifier: Apache-2.0
"""A training step of weft.ShardedOptimizer beside DDP and ZeroRedundancyOptimizer over Gloo.

usage: PYTHONPATH=build/release/python /usr/bin/python3 perf/python/sharded_step.py [RANKS] [STEPS]

Both train the same model, ZeRO-1 with AdamW in fp32, turn by turn in the same processes; "compute"
is forward and backward alone. Milliseconds of rank 0 between barriers, median and least.
"""

import functools
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import weft
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

WIDTH, LAYERS, BATCH, WARM_UP = 512, 8, 4, 5


def model():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
    return torch.nn.Sequential(*layers)


def step(net, optimizer, data):
    if optimizer is None:
        net.zero_grad(set_to_none=True)
    else:
        optimizer.zero_grad()
    net(data).square().mean().backward()
    if optimizer is not None:
        optimizer.step()


def contenders(comm):
    """Name: a step of it."""
    data = torch.randn(BATCH, WIDTH)
    wrapped, plain, alone = DistributedDataParallel(model()), model(), model()
    adamw = torch.optim.AdamW
    zero = ZeroRedundancyOptimizer(wrapped.parameters(), optimizer_class=adamw, lr=1e-3)
    sharded = weft.ShardedOptimizer(plain.parameters(), "adamw", comm=comm, lr=1e-3)
    return {
        "DDP and ZeroRedundancyOptimizer": functools.partial(step, wrapped, zero, data),
        "weft.ShardedOptimizer": functools.partial(step, plain, sharded, data),
        "compute": functools.partial(step, alone, None, data),
    }


def measure(comm, store, steps):
    torch.set_num_threads(1)
    where = f"file://{store}"
    dist.init_process_group("gloo", init_method=where, rank=comm.rank, world_size=comm.size)
    runs = contenders(comm)
    times = {name: [] for name in runs}
    for _ in range(WARM_UP + steps):
        for name, run in runs.items():
            comm.barrier()
            begin = time.perf_counter()
            run()
            comm.barrier()
            times[name].append(1e3 * (time.perf_counter() - begin))
    return {name: each[WARM_UP:] for name, each in times.items()}


def main(ranks=2, steps=50):
    with tempfile.TemporaryDirectory() as folder:
        times = weft.run(measure, int(ranks), (f"{folder}/store", int(steps)), start="spawn")[0]
    for name, each in times.items():
        print(f"{name:32} median {statistics.median(each):7.2f} ms   least {min(each):7.2f} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
