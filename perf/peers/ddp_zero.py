#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""weft-train's GPT on PyTorch's own data parallelism: DistributedDataParallel and
ZeroRedundancyOptimizer over Gloo (Debian: python3-torch). Prints the median tokens/s of all ranks.
"""
import argparse
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

BYTES = 256


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.attention = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.expand, self.contract = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x, future):
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query = qkv[0] * (width // self.heads) ** -0.5
        scores = (query @ qkv[1].transpose(-2, -1)).masked_fill(future, float("-inf"))
        return self.attention((scores.softmax(-1) @ qkv[2]).transpose(1, 2).reshape(x.shape))

    def forward(self, x, future):
        x = x + self.attend(self.norm1(x), future)
        return x + self.contract(nn.functional.gelu(self.expand(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, length):
        super().__init__()
        self.embedding = nn.Embedding(BYTES, width)
        self.positions = nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, BYTES, bias=False)
        self.future = torch.ones(length, length, dtype=torch.bool).triu(1)  # no buffer: Gloo has no bool

    def forward(self, tokens):
        x = self.embedding(tokens) + self.positions
        for block in self.blocks:
            x = block(x, self.future)
        return self.output(self.norm(x))


def batch(text, rank, step, args):
    generator = torch.Generator().manual_seed(1000003 * step + rank)
    starts = torch.randint(len(text) - args.seq - 1, (args.batch,), generator=generator)
    rows = torch.stack([text[s : s + args.seq + 1] for s in starts]).long()
    return rows[:, :-1], rows[:, 1:]


def train(rank, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(args.port))
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.ranks)
    text = torch.frombuffer(bytearray(open(args.data, "rb").read()), dtype=torch.uint8)
    model = DistributedDataParallel(Gpt(args.layers, args.hidden, args.heads, args.seq))
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1
    )
    seconds = []
    for step in range(args.steps):
        inputs, targets = batch(text, rank, step, args)
        start = time.perf_counter()
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - start)
    if rank == 0:
        tokens = args.ranks * args.batch * args.seq
        print(f"{tokens / statistics.median(seconds[2:]):.1f} tokens/s, last loss {loss.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    for name, value in dict(ranks=2, layers=4, hidden=256, heads=4, seq=128, batch=8, steps=20, port=29511).items():
        parser.add_argument("--" + name, type=int, default=value)
    arguments = parser.parse_args()
    mp.spawn(train, (arguments,), arguments.ranks)
