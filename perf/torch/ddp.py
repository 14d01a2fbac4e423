# SPDX-License-Identifier: Apache-2.0
"""A training step of a small GPT under DDP, on Gloo and on weft, in one run. usage: ddp.py [RANKS] [ROUNDS] [STEPS] [MODEL]

The model is of PyTorch's own layers (stock), or written out, as minGPT and its like are (own), with a parameter for each matrix
and its words tied to its output. By turns a round of STEPS is made without DDP, with a DDP that exchanges nothing, with DDP on
Gloo, on weft, and on weft with weft.use_shared_tensors(); all begin with the same weights and see the same data. Printed are
the medians of the rounds of the rank that took longest, in milliseconds: the whole step, what it takes beyond the step without
DDP, and beyond the one that exchanges nothing, whose copies into and out of buckets are DDP's own work. At the end: whether the
weights are Gloo's, bit for bit.
"""

import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing

import weft

VOCABULARY, WIDTH, LAYERS, HEADS, LENGTH, BATCH = 1024, 512, 4, 8, 16, 1
KINDS = ["alone", "silent", "gloo", "weft", "weft shared"]
NEVER = 1 << 62  # bytes of tensors that are shared


class StockGPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.places = torch.nn.Embedding(LENGTH, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS)
        self.out = torch.nn.Linear(WIDTH, VOCABULARY)
        self.register_buffer("mask", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))

    def forward(self, tokens):
        return self.out(self.layers(self.words(tokens) + self.places.weight, self.mask))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(WIDTH) for _ in range(2))
        self.query, self.key, self.value, self.joined = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.wide, self.narrow = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("mask", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))

    def attention(self, x):
        q, k, v = (m(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for m in (self.query, self.key, self.value))
        scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5 + self.mask
        return self.joined((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norms[1](x))))


class OwnGPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.places = torch.nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.layers = torch.nn.Sequential(*(Block() for _ in range(LAYERS)), torch.nn.LayerNorm(WIDTH))

    def forward(self, tokens):
        return self.layers(self.words(tokens) + self.places) @ self.words.weight.T


MODELS = {"stock": StockGPT, "own": OwnGPT}


def exchange_nothing(_, bucket):
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


class Trainer:
    def __init__(self, kind, groups, model):
        self.least = 65536 if kind == "weft shared" else NEVER
        weft.use_shared_tensors(self.least)
        torch.manual_seed(1)
        self.model = MODELS[model]()
        group = groups.get(kind)
        self.wrapped = torch.nn.parallel.DistributedDataParallel(self.model, process_group=group) if group else self.model
        if kind == "silent":
            self.wrapped.register_comm_hook(None, exchange_nothing)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01, momentum=0.9)
        self.data = torch.Generator().manual_seed(dist.get_rank())

    def step(self):
        tokens = torch.randint(VOCABULARY, (BATCH, LENGTH + 1), generator=self.data)
        self.optimizer.zero_grad(set_to_none=False)
        logits = self.wrapped(tokens[:, :-1])
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        self.optimizer.step()

    def round(self, steps):
        """Milliseconds a step, of the slowest rank."""
        weft.use_shared_tensors(self.least)
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        taken = torch.tensor([(time.perf_counter() - begin) / steps * 1e3])
        dist.all_reduce(taken, dist.ReduceOp.MAX)
        return taken.item()


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.model.parameters(), b.model.parameters()))


def rank_main(rank, ranks, file, rounds, steps, model):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=ranks)
    gloo, ours = dist.new_group(backend="gloo"), dist.new_group(backend="weft")
    trainers = {kind: Trainer(kind, {"silent": gloo, "gloo": gloo, "weft": ours, "weft shared": ours}, model) for kind in KINDS}
    for trainer in trainers.values():
        trainer.round(3)  # DDP makes its buckets anew after the first
    found = {kind: [] for kind in KINDS}
    for _ in range(rounds):
        for kind, trainer in trainers.items():
            found[kind].append(trainer.round(steps))
    equal = {kind: same(trainers["gloo"], trainers[kind]) for kind in ("weft", "weft shared")}
    if rank == 0:
        millions = sum(p.numel() for p in trainers["alone"].model.parameters()) / 1e6
        print(f"# {ranks} ranks, {model} model, {millions:.1f} million parameters, ms\n"
              f"{'':>12} {'step':>8} {'beyond':>8} {'exchange':>8}")
        step = {kind: statistics.median(times) for kind, times in found.items()}
        # Within each round, as the machine's speed changes between rounds.
        beyond = {base: {k: statistics.median(x - y for x, y in zip(found[k], found[base])) for k in KINDS}
                  for base in ("alone", "silent")}
        for kind in KINDS:
            print(f"{kind:>12} {step[kind]:8.1f} {beyond['alone'][kind]:8.1f} {beyond['silent'][kind]:8.1f}")
        for kind, is_equal in equal.items():
            print(f"# {kind}: the weights are {'' if is_equal else 'not '}Gloo's, bit for bit")
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    model = sys.argv[4] if len(sys.argv) > 4 else "stock"
    if model not in MODELS:
        sys.exit(f"ddp.py: no model '{model}'; there are: {', '.join(MODELS)}")
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(rank_main, (ranks, f"{folder}/store", rounds, steps, model), ranks)
