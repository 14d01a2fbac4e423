# SPDX-License-Identifier: Apache-2.0
"""Trains a small model on several ranks with PyTorch's DistributedDataParallel, over weft:

    python3 -m torch.distributed.run --nproc_per_node=2 examples/torch/ddp.py

Of a program that used Gloo, the import and the name of the back end are all that changes.
"""

import torch
import torch.distributed as dist
import weft  # noqa: F401, makes "weft" a back end


def main():
    dist.init_process_group("weft")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    torch.manual_seed(100 + rank)  # each rank has its own data
    inputs = torch.randn(64, 8)
    wanted = inputs.sum(1, keepdim=True).sin()
    for step in range(101):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean, dist.ReduceOp.AVG)
            if rank == 0:
                print(f"step {step}: loss {mean:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
