# SPDX-License-Identifier: Apache-2.0
"""all_reduce of torch tensors on weft beside Gloo, in one run. usage: all_reduce.py [RANKS] [ROUNDS] [CALLS]

Both back ends are groups of the same processes. By turns each makes a round of calls of one size; printed is the median of
the rounds, of at most CALLS each, of the rank that took longest, in microseconds: of Gloo, of weft with tensors of PyTorch's
allocator, and with those of weft.use_shared_tensors() (from 64 KiB on; smaller ones are ordinary). The last lines are what torch and the
door cost: all_reduce of 8 bytes in a group of one rank, where nobody is waited for, through torch.distributed and through the process group.
"""

import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing

import weft

SIZES = [8 << shift for shift in range(0, 24, 3)]  # 8 B to 16 MiB
SIZES += [64 << 20]
HEADS = ["bytes", "gloo", "weft", "weft shared", "gloo/weft", "gloo/shared"]
PLAIN = torch.zeros(SIZES[-1] // 4)  # made before tensors are shared
weft.use_shared_tensors()


def calls_of(size, most):
    """About a tenth of a second at some gigabytes a second."""
    return max(3, min(most, (most << 15) // size))


def timed(call, times):
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - begin) / times * 1e6


def slowest(value):
    tensor = torch.tensor([value])
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return tensor.item()


def measure(calls, times, rounds):
    """The median of each call, made by turns."""
    for call in calls.values():
        timed(call, max(3, times // 10))
    found = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            found[name].append(slowest(timed(call, times)))
    return {name: statistics.median(values) for name, values in found.items()}


def compare(groups, size, rounds, most):
    """By turns: Gloo, and weft with both kinds of memory."""
    plain, shared = PLAIN[: size // 4], torch.zeros(size // 4)
    calls = {
        "gloo": lambda: dist.all_reduce(plain, group=groups["gloo"]),
        "weft": lambda: dist.all_reduce(plain, group=groups["weft"]),
        "shared": lambda: dist.all_reduce(shared, group=groups["weft"]),
    }
    return measure(calls, calls_of(size, most), rounds)


def rank_main(rank, ranks, file, rounds, most):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=ranks)
    groups = {"gloo": dist.new_group(backend="gloo"), "weft": dist.new_group(backend="weft")}
    alone = {name: [dist.new_group([r], backend=name) for r in range(ranks)][rank] for name in groups}
    if rank == 0:
        print(f"# {ranks} ranks, us\n" + " ".join(f"{word:>11}" for word in HEADS))
    for size in SIZES:
        found = compare(groups, size, rounds, most)
        gains = [found["gloo"] / found[kind] for kind in ("weft", "shared")]
        if rank == 0:
            print(" ".join([f"{size:11}"] + [f"{value:11.1f}" for value in (*found.values(), *gains)]), flush=True)
    tensor = torch.zeros(2)
    for name, group in alone.items():
        options = dist.AllreduceOptions()
        calls = {
            "dist.all_reduce": lambda: dist.all_reduce(tensor, group=group),
            "group.allreduce().wait()": lambda: group.allreduce([tensor], options).wait(),
            "group.size()": group.size,
        }
        found = measure(calls, most, rounds)
        if rank == 0:
            print(f"# {name}, a group of one: " + ", ".join(f"{call} {us:.2f} us" for call, us in found.items()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    most = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(rank_main, (ranks, f"{folder}/store", rounds, most), ranks)
