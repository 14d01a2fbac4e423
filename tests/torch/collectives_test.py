# SPDX-License-Identifier: Apache-2.0
"""Each collective of torch.distributed over weft, with each type of tensors that torch sends."""

import functools
import operator
import threading
import unittest

import torch
import torch.distributed as dist
from world import backend_of, equal, raises, run

INTEGERS = [torch.uint8, torch.int8, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
BITWISE = {"BAND": operator.and_, "BOR": operator.or_, "BXOR": operator.xor}
MOVED = [torch.bool, torch.int16, *INTEGERS, *FLOATS, *COMPLEX]


def value(rank, dtype, shape=(3,)):
    """Another one for each rank, which is exact in every type."""
    return torch.full(shape, (rank + 1) * (1 - 1j) if dtype.is_complex else rank + 1).to(dtype)


def total(ranks):
    return ranks * (ranks + 1) // 2


def all_reduce(rank, ranks):
    for dtype in [*INTEGERS, *FLOATS]:
        wanted = {"SUM": total(ranks), "MIN": 1, "MAX": ranks, "PRODUCT": [1, 1, 2, 6, 24][ranks]}
        for op, result in wanted.items():
            tensor = value(rank, dtype)
            dist.all_reduce(tensor, getattr(dist.ReduceOp, op))
            equal(tensor, result)
        tensor = value(rank, dtype) * 2 * ranks
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        equal(tensor, 2 * total(ranks))
        tensor = value(rank, dtype)
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(2.0))
        equal(tensor, 2 * total(ranks))
        if dtype.is_floating_point:
            continue
        for op, combine in BITWISE.items():
            tensor = value(rank, dtype) + 5
            dist.all_reduce(tensor, getattr(dist.ReduceOp, op))
            equal(tensor, functools.reduce(combine, [6 + r for r in range(ranks)]))
    for dtype in COMPLEX:
        tensor = value(rank, dtype)
        dist.all_reduce(tensor)
        equal(tensor, total(ranks) * (1 - 1j))


def all_reduce_of_bools(rank, ranks):
    mine = torch.tensor([True, False, rank == 0])
    for op, wanted in {"SUM": [1, 0, 1], "MAX": [1, 0, 1], "PRODUCT": [1, 0, 0], "MIN": [1, 0, 0],
                       "BAND": [1, 0, 0], "BOR": [1, 0, 1], "BXOR": [ranks % 2, 0, 1]}.items():
        tensor = mine.clone()
        dist.all_reduce(tensor, getattr(dist.ReduceOp, op))
        equal(tensor, torch.tensor(wanted).bool())
    with raises(ValueError, "AVG", "fix:"):
        dist.all_reduce(mine, dist.ReduceOp.AVG)


def all_reduce_coalesced(rank, ranks):
    tensors = [value(rank, torch.float32), value(rank, torch.float32, (2, 2))]
    dist.all_reduce_coalesced(tensors)
    for tensor in tensors:
        equal(tensor, total(ranks))


def rooted(rank, ranks):
    for dtype in MOVED:
        for root in range(ranks):
            tensor = value(rank, dtype, (2, 2))
            dist.broadcast(tensor, root)
            equal(tensor, value(root, dtype, (2, 2)))
            blocks = [torch.zeros(3, dtype=dtype) for _ in range(ranks)] if rank == root else None
            dist.gather(value(rank, dtype), blocks, dst=root)
            for r, block in enumerate(blocks or []):
                equal(block, value(r, dtype))
            block = torch.zeros(3, dtype=dtype)
            dist.scatter(block, [value(r, dtype) for r in range(ranks)] if rank == root else None, src=root)
            equal(block, value(rank, dtype))
    for root in range(ranks):
        tensor = value(rank, torch.float64)
        dist.reduce(tensor, root)
        if rank == root:
            equal(tensor, total(ranks))


def gathers(rank, ranks):
    for dtype in MOVED:
        apart = [torch.zeros(3, dtype=dtype) for _ in range(ranks)]
        beside = list(torch.zeros(ranks, 3, dtype=dtype).unbind())
        for blocks in (apart, beside):
            dist.all_gather(blocks, value(rank, dtype))
            for r, block in enumerate(blocks):
                equal(block, value(r, dtype))
        whole = torch.zeros(ranks * 3, dtype=dtype)
        dist.all_gather_into_tensor(whole, value(rank, dtype))
        equal(whole, torch.cat([value(r, dtype) for r in range(ranks)]))
    uneven = [torch.zeros(r + 1) for r in range(ranks)]
    dist.all_gather(uneven, torch.full((rank + 1,), float(rank)))
    for r, block in enumerate(uneven):
        equal(block, r)
    lists = [[torch.zeros(2), torch.zeros(1)] for _ in range(ranks)]
    dist.all_gather_coalesced(lists, [torch.full((2,), float(rank)), torch.full((1,), rank + 10.0)])
    for r, blocks in enumerate(lists):
        equal(blocks[0], r)
        equal(blocks[1], r + 10)


def reduce_scatter(rank, ranks):
    for dtype in [*INTEGERS, *FLOATS]:
        block = torch.zeros(3, dtype=dtype)
        dist.reduce_scatter(block, [value(rank, dtype) + r for r in range(ranks)])
        equal(block, total(ranks) + ranks * rank)
        whole = torch.cat([value(rank, dtype) + r for r in range(ranks)])
        dist.reduce_scatter_tensor(block, whole, dist.ReduceOp.MAX)
        equal(block, ranks + rank)
    block = torch.zeros(rank + 1)
    dist.reduce_scatter(block, [torch.ones(r + 1) for r in range(ranks)])
    equal(block, ranks)


def all_to_all(rank, ranks):
    for dtype in MOVED:
        got = torch.zeros(ranks, 2, dtype=dtype)
        dist.all_to_all_single(got, value(rank, dtype, (ranks, 2)))
        equal(got, torch.stack([value(r, dtype, (2,)) for r in range(ranks)]))
        blocks = [torch.zeros(r + 1, dtype=dtype) for r in range(ranks)]
        dist.all_to_all(blocks, [value(rank, dtype, (rank + 1,)) for _ in range(ranks)])
        for r, block in enumerate(blocks):
            equal(block, value(r, dtype, (r + 1,)))
    sizes = [r + 1 for r in range(ranks)]
    got = torch.zeros((rank + 1) * ranks, 2)
    dist.all_to_all_single(got, torch.full((sum(sizes), 2), float(rank)), [rank + 1] * ranks, sizes)
    equal(got, torch.arange(float(ranks)).repeat_interleave(rank + 1)[:, None].expand(-1, 2))
    nothing = [0] * ranks
    dist.all_to_all_single(torch.zeros(0), torch.zeros(0), nothing, nothing)


def objects(rank, ranks):
    everything = [None] * ranks
    dist.all_gather_object(everything, {"rank": rank, "name": "x" * rank})
    equal([found["rank"] for found in everything], list(range(ranks)))
    told = [{"a": 1}] if rank == 0 else [None]
    dist.broadcast_object_list(told)
    equal(told, [{"a": 1}])
    mine = [None]
    dist.scatter_object_list(mine, [f"for {r}" for r in range(ranks)])
    equal(mine, [f"for {rank}"])
    everything = [None] * ranks if rank == 0 else None
    dist.gather_object(rank, everything)
    if rank == 0:
        equal(everything, list(range(ranks)))


def subgroups(rank, ranks):
    last = dist.new_group([ranks - 1, 0]) if ranks > 2 else dist.new_group([0, 1])
    alone = [dist.new_group([r]) for r in range(ranks)]
    tensor = value(rank, torch.float32)
    dist.all_reduce(tensor, group=alone[rank])
    equal(tensor, rank + 1)
    if rank in (0, ranks - 1):
        dist.all_reduce(tensor, group=last)
        equal(tensor, ranks + 1)
        tensor.fill_(rank)
        dist.broadcast(tensor, ranks - 1, group=last)
        equal(tensor, ranks - 1)
    dist.barrier()


def asynchronous(rank, ranks):
    tensors = [value(rank, torch.float32, (1 << k,)) for k in range(16)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    works[-1].wait()
    for work, tensor in zip(works, tensors):
        assert work.is_completed() and work.is_success()
        equal(tensor, total(ranks))
    # A future's value are the outputs, and a callback may make calls of its own.
    tensor = value(rank, torch.float32)
    more = value(rank, torch.float32)

    def then(future):
        dist.all_reduce(more)
        return future.value()[0] * 2

    future = dist.all_reduce(tensor, async_op=True).get_future().then(then)
    equal(future.wait(), 2 * total(ranks))
    equal(more, total(ranks))
    # Nor need it be work that a callback waits for: the future of a later call, whose callback does the same.
    values = [value(rank, torch.float32) for _ in range(4)]

    def then_next(future):
        equal(future.value()[0], total(ranks))
        if values:
            dist.all_reduce(values.pop(), async_op=True).get_future().then(then_next).wait()

    dist.all_reduce(values.pop(), async_op=True).get_future().then(then_next).wait()
    equal(len(values), 0)
    # Another thread may wait, and this one work meanwhile.
    tensor = value(rank, torch.float32)
    work = dist.all_reduce(tensor, async_op=True)
    thread = threading.Thread(target=work.wait)
    thread.start()
    thread.join()
    equal(tensor, total(ranks))
    # Begun without anybody who waits.
    tensor.fill_(total(ranks))
    work = dist.all_reduce(tensor, async_op=True)
    while not work.is_completed():
        pass
    equal(work.result()[0], total(ranks) * ranks)


def futures_of_queued_calls(rank, ranks):
    """A callback waits for a call that is queued already, behind the one that it is of."""
    lasting, short = torch.ones(2_000_000), value(rank, torch.float32)
    first = dist.all_reduce(lasting, async_op=True).get_future()
    second = dist.all_reduce(short, async_op=True).get_future()
    equal(first.then(lambda _: second.wait()[0]).wait(), total(ranks))


def tensors_that_end_with_their_calls(rank, ranks):
    """A call's tensors ended under the lock of the queue and wanted Python's, which who asks for a future holds."""
    for _ in range(5):
        futures = [
            dist.all_reduce(torch.ones(2), async_op=True).get_future().then(lambda _: None) for _ in range(400)
        ]
        for future in futures:
            future.wait()


def profiled(rank, ranks):
    with torch.autograd.profiler.profile() as profiler:
        dist.all_reduce(torch.ones(2))
        dist.barrier()
    names = {event.name for event in profiler.function_events}
    assert {"weft:all_reduce", "weft:barrier"} <= names, names


def sequence(rank, ranks):
    group = backend_of(dist.distributed_c10d._get_default_group())
    if hasattr(group, "_set_sequence_number_for_group"):  # torch 2.14 has none: all begin at 0
        group._set_sequence_number_for_group()
    first = group._get_sequence_number_for_group()
    dist.all_reduce(torch.ones(1))
    equal(group._get_sequence_number_for_group(), first + 1)
    everybody = [None] * ranks
    dist.all_gather_object(everybody, first)
    equal(everybody, [first] * ranks)


def trained(rank, ranks):
    torch.manual_seed(7)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    model(torch.full((1, 4), float(rank))).sum().backward()
    equal(model.module.weight.grad, sum(range(ranks)) / ranks)


def again(rank, ranks):
    """A group of the same name in the same store finds its own ranks."""
    store = dist.distributed_c10d._get_default_store()
    for _ in range(3):
        dist.destroy_process_group()
        dist.init_process_group("weft", store=store, rank=rank, world_size=ranks)
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        equal(tensor, ranks)


def trained_as_over_gloo(rank, ranks):
    """A sum of two numbers has one result: the weights are equal to the bit."""
    weights = []
    for backend in ("gloo", "weft"):
        group = dist.new_group(backend=backend)
        torch.manual_seed(7)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8), process_group=group)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        torch.manual_seed(rank)
        for _ in range(10):
            optimizer.zero_grad()
            model(torch.randn(4, 8)).square().sum().backward()
            optimizer.step()
        weights.append(model.module.weight.detach())
    equal(weights[1], weights[0])


class Collectives(unittest.TestCase):
    """A test for each function above and each number of ranks."""


for function in (all_reduce, all_reduce_of_bools, all_reduce_coalesced, rooted, gathers, reduce_scatter, all_to_all,
                 objects, subgroups, asynchronous, futures_of_queued_calls, tensors_that_end_with_their_calls, profiled, sequence,
                 trained):
    for ranks in (2, 3):
        setattr(Collectives, f"test_{function.__name__}_{ranks}_ranks",
                lambda self, function=function, ranks=ranks: run(ranks, function))
Collectives.test_trained_as_over_gloo = lambda self: run(2, trained_as_over_gloo)

if __name__ == "__main__":
    unittest.main()
