# SPDX-License-Identifier: Apache-2.0
"""Messages between two ranks: tags in any order, from any source, beside collectives."""

import unittest

import torch
import torch.distributed as dist
from world import await_rank, equal, raises, run


def one(value):
    return torch.tensor([float(value)])


def tags_in_any_order(rank, ranks):
    if rank == 0:
        for tag in range(4):
            dist.send(one(10 + tag), 1, tag=tag)
    elif rank == 1:
        for tag in (2, 0, 3, 1):
            tensor = one(-1)
            dist.recv(tensor, 0, tag=tag)
            equal(tensor, 10 + tag)


def equal_tags_in_order(rank, ranks):
    if rank == 0:
        for value in range(20):
            dist.send(one(value), 1)
    elif rank == 1:
        works = []
        for _ in range(20):
            tensor = one(-1)
            works.append((dist.irecv(tensor, 0), tensor))
        for value, (work, tensor) in enumerate(works):
            work.wait()
            equal(tensor, value)


def exchanged(rank, ranks):
    """All at once, large ones too, with receives before and after collectives."""
    others = [r for r in range(ranks) if r != rank]
    got = {r: torch.zeros(100000) for r in others}
    works = [dist.irecv(got[r], r) for r in others]
    total = one(1)
    dist.all_reduce(total)
    equal(total, ranks)
    works += [dist.isend(torch.full((100000,), float(rank)), r) for r in others]
    for work in works:
        work.wait()
    for r in others:
        equal(got[r], r)


def from_any_source(rank, ranks):
    if rank > 0:
        dist.send(one(rank), 0, tag=5)
        return
    found = []
    for _ in range(ranks - 1):
        tensor = one(-1)
        source = dist.recv(tensor, tag=5)
        equal(tensor, source)
        found.append(source)
    equal(sorted(found), list(range(1, ranks)))


def batched(rank, ranks):
    got = one(-1)
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, one(rank), (rank + 1) % ranks),
        dist.P2POp(dist.irecv, got, (rank - 1) % ranks),
    ])
    for work in works:
        work.wait()
    equal(got, (rank - 1) % ranks)


def of_a_subgroup(rank, ranks):
    group = dist.new_group([0, ranks - 1])
    if rank == 0:
        dist.send(torch.arange(3), ranks - 1, group=group)
    elif rank == ranks - 1:
        tensor = torch.zeros(3, dtype=torch.int64)
        dist.recv(tensor, 0, group=group)
        equal(tensor, [0, 1, 2])


def of_a_wrong_size(rank, ranks):
    if rank == 0:
        dist.send(torch.zeros(4), 1)
        dist.send(torch.ones(3), 1)
    elif rank == 1:
        with raises(RuntimeError, "rank 0 sent 16 bytes", "has 12", "fix:"):
            dist.recv(torch.zeros(3), 0)
        tensor = torch.zeros(3)
        dist.recv(tensor, 0)  # and the next is not hurt
        equal(tensor, 1)


def that_nobody_sends(rank, ranks):
    if rank == 0:
        dist.send(torch.zeros(1), 1, tag=3)
    if rank == 1:
        with raises(RuntimeError, "weft:recv Timed out", "rank 1", "2000 ms", "fix:"):
            dist.recv(torch.zeros(1), 0)
        with raises(RuntimeError, "weft:recvAnySource Timed out", "fix:"):
            dist.recv(torch.zeros(1))
        with raises(RuntimeError, "tag 4 from rank 0", "one with tag 3 from rank 0 is there"):
            dist.recv(torch.zeros(1), 0, tag=4)
        work = dist.irecv(torch.zeros(1), 0)
        with raises(RuntimeError, "has not finished within the 20 ms"):
            work.wait(__import__("datetime").timedelta(milliseconds=20))
    await_rank(1, rank)


def that_nobody_asks_for(rank, ranks):
    if rank == 0:
        with raises(RuntimeError, "weft:send Timed out: rank 2", "no message of rank 0 within 1000 ms", "fix:"):
            dist.send(torch.zeros(1), 2)
    await_rank(0, rank)


def to_oneself(rank, ranks):
    group = dist.distributed_c10d._get_default_group()
    with raises(ValueError, "the other rank is this one", "fix: copy"):
        group.send([torch.zeros(1)], rank, 0)
    with raises(ValueError, f"the other rank is {ranks}", "fix:"):
        group.recv([torch.zeros(1)], ranks, 0)


class Messages(unittest.TestCase):
    """A test for each function above and each number of ranks."""


for function in (tags_in_any_order, equal_tags_in_order, exchanged, from_any_source, batched, of_a_subgroup,
                 of_a_wrong_size, to_oneself):
    for ranks in (2, 3):
        setattr(Messages, f"test_{function.__name__}_{ranks}_ranks",
                lambda self, function=function, ranks=ranks: run(ranks, function))
Messages.test_that_nobody_sends = lambda self: run(2, that_nobody_sends, timeout=2.0)
Messages.test_that_nobody_asks_for = lambda self: run(3, that_nobody_asks_for, timeout=1.0)

if __name__ == "__main__":
    unittest.main()
