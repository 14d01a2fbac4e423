# SPDX-License-Identifier: Apache-2.0
"""The communication hook of DDP: what it computes, bit for bit, and what becomes of a model that is trained with it."""

import unittest

import torch
import torch.distributed as dist
import world

import weft


def sums_in_fp32_rounded_once(rank, ranks):
    """What the hook rests on: an all-reduce of bfloat16 is the fp32 sum in rank order, rounded to nearest at its end."""
    for elements in (1, 7, 1000, 70_001):
        torch.manual_seed(elements)
        addends = (torch.randn(ranks, elements) * 10 ** torch.randint(-3, 4, (ranks, elements))).bfloat16()
        wanted = torch.zeros(elements)
        stepwise = addends[0].clone()
        for addend in addends:
            wanted += addend.float()
        for addend in addends[1:]:
            stepwise += addend
        got = addends[rank].clone()
        dist.all_reduce(got)
        world.equal(got, wanted.bfloat16())
        if elements > 1000 and ranks > 2 and torch.equal(got, stepwise):
            raise AssertionError("sums in bfloat16 would have passed as well: the addends prove nothing")


def new_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))


def weights_of(model):
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


def train(rank, hook):
    """The weights after some steps, each rank with data of its own."""
    model = torch.nn.parallel.DistributedDataParallel(new_model(), bucket_cap_mb=0.002)  # several buckets
    if hook:
        model.register_comm_hook(None, weft.bf16_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(100 + rank)
    inputs = torch.randn(64, 20)
    for _ in range(20):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True).sin()).backward()
        optimizer.step()
    return weights_of(model)


def trains_as_in_fp32(rank, ranks):
    start, exact, rounded = weights_of(new_model()), train(rank, hook=False), train(rank, hook=True)
    every = [torch.empty_like(rounded) for _ in range(ranks)]
    dist.all_gather(every, rounded)
    for other in every:
        world.equal(rounded.view(torch.int32), other.view(torch.int32))
    error = (rounded - exact).norm() / (exact - start).norm()
    if not 0 < error < 2**-7:  # of what the steps have changed; bfloat16 rounds by 2^-9 at most
        raise AssertionError(f"weights differ from fp32's by {error} of what they have changed")


def averages_in_the_group_of_its_state(rank, ranks):
    group = dist.new_group([0, 2])
    if rank == 1:
        return
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1, bias=False), process_group=group)
    model.register_comm_hook(group, weft.bf16_hook)
    model(torch.full((1, 3), float(rank + 1))).sum().backward()
    world.equal(model.module.weight.grad, torch.full((1, 3), 2.0))  # (1 + 3) / 2


class Hooks(unittest.TestCase):
    def test_sums_in_fp32_rounded_once(self):
        for ranks in (2, 4):
            world.run(ranks, sums_in_fp32_rounded_once)

    def test_a_model_that_is_trained_with_it(self):
        world.run(2, trains_as_in_fp32)

    def test_a_group_of_its_own(self):
        world.run(3, averages_in_the_group_of_its_state)


if __name__ == "__main__":
    unittest.main()
