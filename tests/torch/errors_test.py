# SPDX-License-Identifier: Apache-2.0
"""What goes wrong: each is an exception with a sentence, and the group goes on where that is possible."""

import contextlib
import datetime
import os
import pathlib
import signal
import socket
import time
import unittest

import torch
import torch.distributed as dist
from world import await_rank, backend_of, equal, raises, run


def free_port():
    """One that the kernel gives to nobody who asks for any: other tests run beside."""
    for port in range(10000 + os.getpid() % 5000, 20000):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


PORT = free_port()


def works(ranks):
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    equal(tensor, ranks)


def bad_tensors(rank, ranks):
    with raises(ValueError, "weft:all_reduce: got a non-contiguous Float tensor of shape [3, 2]", "contiguous()"):
        dist.all_reduce(torch.ones(2, 3).t())
    negative = torch._neg_view(torch.ones(2))  # PyTorch resolves it where no lists are passed
    with raises(ValueError, "got a Float tensor of shape [2] that is a view with another sign", "resolve_neg()"):
        dist.all_gather([torch.ones(2)] * ranks, negative)
    with raises(ValueError, "got a sparse Float tensor", "to_dense()"):
        dist.all_reduce(torch.eye(2).to_sparse())
    with raises(ValueError, "got a tensor on meta", "weft moves host memory", "tensor.cpu()"):
        meta = torch.ones(2, device="meta")
        backend_of(dist.distributed_c10d._get_default_group()).allgather([[meta] * ranks], [meta])
    with raises(ValueError, "ReduceOp.SUM of a Short tensor", "int32"):
        dist.all_reduce(torch.ones(2, dtype=torch.int16))
    group = dist.distributed_c10d._get_default_group()
    with raises(ValueError, "a list of 2 input tensors", "one tensor"):
        group.allreduce([torch.ones(1), torch.ones(1)])
    with raises(ValueError, "ReduceOp.MAX of a ComplexFloat tensor"):
        group.allreduce([torch.ones(1, dtype=torch.complex64)], dist.ReduceOp.MAX)
    with raises(ValueError, "ReduceOp.BXOR of a Float tensor", "fix: pass integers"):
        dist.all_reduce(torch.ones(2), dist.ReduceOp.BXOR)
    works(ranks)


def forked_child(rank, ranks):
    """It has none of its parent's threads: it waited for ever where one of them had been in a call."""
    late = torch.ones(1)
    if rank != 0:
        await_rank(0, rank)
    begun = dist.all_reduce(late, async_op=True)  # of rank 0: until the others make it, too
    child = os.fork()
    if child == 0:
        made = torch.ones(2)
        calls = [
            lambda: dist.all_reduce(made),
            lambda: dist.send(made, (rank + 1) % ranks),
            lambda: dist.recv(made, (rank + 1) % ranks),
            lambda: dist.recv(made),
        ]
        for call in calls:
            with raises(ValueError, "was forked from the one that has made the group", "leave all calls to its parent"):
                call()
        if rank == 0:
            with raises(RuntimeError, "weft:all_reduce was begun by the process that this one was forked from"):
                begun.wait()
        os._exit(0)
    equal(os.waitpid(child, 0)[1], 0)
    if rank == 0:
        await_rank(0, rank)
    begun.wait()
    equal(late, ranks)
    works(ranks)


def bad_lists(rank, ranks):
    group = dist.distributed_c10d._get_default_group()
    with raises(ValueError, "got 1 output tensors", "one for each rank"):
        group.allgather([[torch.ones(1)]], [torch.ones(1)])
    with raises(ValueError, "Float tensor of shape [2] beside a Float tensor of shape [1]", "1 elements"):
        group.allgather([[torch.ones(2)] * ranks], [torch.ones(1)])
    with raises(ValueError, "Double tensor", "one dtype"):
        group.allgather([[torch.ones(1, dtype=torch.float64)] * ranks], [torch.ones(1)])
    with raises(ValueError, "split sizes do not fit"):
        dist.all_to_all_single(torch.ones(ranks), torch.ones(ranks), [1] * ranks, [2] * ranks)
    with raises(ValueError, "not divisible by"):
        dist.all_to_all_single(torch.ones(ranks + 1), torch.ones(ranks + 1))
    with raises(ValueError, f"the root is {ranks}"):
        options = dist.BroadcastOptions()
        options.rootRank = ranks
        group.broadcast([torch.ones(1)], options)
    with raises(ValueError, "that is not the root"):
        options = dist.GatherOptions()
        options.rootRank = (rank + 1) % ranks
        group.gather([[torch.ones(1)] * ranks], [torch.ones(1)], options)
    works(ranks)


def other_shapes(rank, ranks):
    """The ranks disagree: all are told so by one text, and the group is broken."""
    with raises(RuntimeError, "all_reduce(count=3", "all_reduce(count=2", "fix:"):
        dist.all_reduce(torch.ones(3 if rank == 0 else 2))
    with raises(RuntimeError, "all_reduce(count=3"):
        dist.all_reduce(torch.ones(1))


def other_splits(rank, ranks):
    """Rank 1 expects two of rank 0, which sends one, and may have gone on when that is found."""
    expected = [1 + rank] + [1] * (ranks - 1)
    try:
        dist.all_to_all_single(torch.ones(sum(expected)), torch.ones(ranks), expected, [1] * ranks)
    except RuntimeError as error:
        assert "alltoallv" in str(error) and "fix:" in str(error), error
        return
    assert rank == 0, "no RuntimeError"


def a_late_rank(rank, ranks):
    if rank == 1:
        with raises(RuntimeError, "weft:barrier Timed out", "rank 0", "timed out after 3000 ms", "fix:", "init_process_group"):
            dist.barrier()
    await_rank(1, rank)


def a_killed_rank(rank, ranks):
    works(ranks)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with raises(RuntimeError, "rank 1", "SIGKILL"):
        for _ in range(100000):
            dist.all_reduce(torch.ones(2))


def a_missing_rank(rank, ranks):
    group = dist.distributed_c10d._get_default_group()
    long = datetime.timedelta(seconds=20)
    group.monitored_barrier(long)
    if rank == 0:
        with raises(RuntimeError, "Rank 1 failed to pass monitoredBarrier in 300 ms (group '"):
            group.monitored_barrier(datetime.timedelta(milliseconds=300))
        with raises(RuntimeError, "Rank 0 timed out in monitoredBarrier"):
            group.monitored_barrier(datetime.timedelta(0))
    elif rank == 2:
        with raises(RuntimeError, "Rank 2 successfully reached monitoredBarrier", "rank 0", "fix:"):
            group.monitored_barrier(long)
    works(ranks)
    group.monitored_barrier(long)


def all_missing_ranks(rank, ranks):
    group = dist.distributed_c10d._get_default_group()
    if rank == 0:
        with raises(RuntimeError, "Ranks 1, 2 failed to pass monitoredBarrier in 100 ms"):
            group.monitored_barrier(datetime.timedelta(milliseconds=100), wait_all_ranks=True)
    works(ranks)


def no_first_rank(rank, ranks):
    """Rank 0 never makes the group."""
    if rank == 0:
        return
    store = dist.HashStore()
    with raises(RuntimeError, "rank 1 of group '0' did not get the id", "within 300 ms", "fix:"):
        dist.init_process_group(
            "weft", store=store, rank=rank, world_size=ranks, timeout=datetime.timedelta(milliseconds=300)
        )


def a_dead_store(rank, ranks):
    """What has met goes on without the store; what needs it says so."""
    plain = {} if torch.__version__.startswith("1.") else {"use_libuv": False}  # which Debian's torch 2 is built without
    store = dist.TCPStore("127.0.0.1", PORT, ranks, rank == 0, timeout=datetime.timedelta(seconds=10), **plain)
    dist.init_process_group("weft", store=store, rank=rank, world_size=ranks)
    works(ranks)
    if rank == 0:
        store.set("pid", str(os.getpid()))
        store.wait(["gone"])
        os.kill(os.getpid(), signal.SIGKILL)
    group = dist.distributed_c10d._get_default_group()
    first = pathlib.Path("/proc", store.get("pid").decode())
    store.set("gone", "1")
    while first.exists():  # the test that has forked both waits for it
        time.sleep(0.01)
    with raises(RuntimeError, "did not get the state of monitoredBarrier through torch's store", "fix:"):
        group.monitored_barrier(datetime.timedelta(seconds=2))
    with raises(RuntimeError, "rank 0"):
        dist.barrier()


def left_in_flight(rank, ranks):
    """A group that is destroyed with calls in flight ends them; nobody hangs."""
    work = dist.irecv(torch.ones(1), (rank + 1) % ranks)
    if rank == 0:
        pending = dist.all_reduce(torch.ones(1), async_op=True)
    dist.isend(torch.ones(1), (rank + 1) % ranks, tag=1)  # which is never received
    begin = time.monotonic()
    dist.destroy_process_group()
    assert time.monotonic() - begin < 12, f"it took {time.monotonic() - begin} s"
    for one in [work] + ([pending] if rank == 0 else []):
        with raises(RuntimeError):
            one.wait()


class Errors(unittest.TestCase):
    """A test for each function above."""

    def test_a_killed_rank(self):
        run(2, a_killed_rank)

    def test_a_late_rank(self):
        run(2, a_late_rank, timeout=3.0)

    def test_left_in_flight(self):
        run(2, left_in_flight)

    def test_no_first_rank(self):
        run(2, no_first_rank, backend=None)

    def test_a_dead_store(self):
        run(2, a_dead_store, backend=None)


for function, sizes in {bad_tensors: (2,), forked_child: (2,), bad_lists: (2, 3), other_shapes: (2, 3), other_splits: (2,), a_missing_rank: (3,),
                        all_missing_ranks: (3,)}.items():
    for ranks in sizes:
        setattr(Errors, f"test_{function.__name__}_{ranks}_ranks",
                lambda self, function=function, ranks=ranks: run(ranks, function))

if __name__ == "__main__":
    unittest.main()
