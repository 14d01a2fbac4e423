# SPDX-License-Identifier: Apache-2.0
"""Collectives on tensors, and the sharded optimizer over parameters beside torch.optim."""

import glob
import json
import os
import tempfile
import unittest

import numpy
import weft

try:
    import torch

    torch.set_num_threads(1)  # ranks are forked, and OpenMP's threads are not
except ImportError:
    torch = None

BATCH = 8
STEPS = 6


def united(paths):
    """What files of parts hold, each name from all of them: {name: one-dimensional array of float32}."""
    chunks = {}
    for path in paths:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            entries = json.loads(file.read(length))
            data = file.read()
        offsets = json.loads(entries.pop("__metadata__")["DCP_SHARDING_INFO"])
        for name, entry in entries.items():
            begin, end = entry["data_offsets"]
            assert entry["dtype"] == "F32" and len(entry["shape"]) == 1
            chunks.setdefault(name, {})[offsets[name]["saved_offsets"][0]] = numpy.frombuffer(data[begin:end], "float32")
    for parts in chunks.values():
        ends = [0] + [offset + len(parts[offset]) for offset in sorted(parts)]
        assert ends[:-1] == sorted(parts), "a hole, or an overlap"
    return {name: numpy.concatenate([parts[offset] for offset in sorted(parts)]) for name, parts in chunks.items()}


def model(dtype=None):
    torch.manual_seed(1)
    layers = (
        torch.nn.Linear(8, 16),
        torch.nn.Tanh(),
        torch.nn.Linear(16, 16),
        torch.nn.Linear(16, 4),
    )
    made = torch.nn.Sequential(*layers).to(dtype or torch.float32)
    made[2].weight.requires_grad_(False)
    return made


def loss_of(net, step, rank=0, ranks=1, dtype=None):
    random = torch.Generator().manual_seed(step)
    x, y = torch.randn(BATCH, 8, generator=random), torch.randn(BATCH, 4, generator=random)
    mine = slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
    x, y = x[mine].to(dtype or torch.float32), y[mine].to(dtype or torch.float32)
    return ((net(x) - y) ** 2).mean()


def serial(make, clip=None, steps=STEPS, schedule=False):
    net = model()
    optimizer = make(net)
    rates = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5) if schedule else None
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(net, step).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        rates and rates.step()
    return [p.detach().clone() for p in net.parameters()]


def steps(comm, net, optimizer, first=0, last=STEPS, rates=None):
    for step in range(first, last):
        optimizer.zero_grad()
        loss_of(net, step, comm.rank, comm.size).backward()
        optimizer.step()
        rates and rates.step()
    return [p.detach().numpy().copy() for p in net.parameters()]


def fresh(comm):
    net = model()
    if comm.rank:  # rank 0's parameters are everybody's
        for p in net.parameters():
            p.data.zero_()
    return net


def adamw(net):
    return torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.1)


def sharded(comm, net, name="adamw", params=None, **how):
    how = {"lr": 0.01, "weight_decay": 0.1, "bucket_elements": 100, **how}
    return weft.ShardedOptimizer(params or net.parameters(), name, comm=comm, **how)


def tensors(comm):
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.complex64):
        mine = torch.ones(3, dtype=dtype)
        got = comm.all_reduce(mine)
        assert got.dtype == dtype and bool((got == comm.size).all())
        assert comm.all_gather(mine.reshape(1, 3)).shape == (comm.size, 3)


@unittest.skipIf(torch is None, "torch is not installed")
class Tensors(unittest.TestCase):
    def test_collectives(self):
        weft.run(tensors, ranks=2, timeout=60)

    def test_what_is_refused(self):
        comm = weft.Communicator.all(1)[0]
        with self.assertRaisesRegex(weft.InvalidArgument, "send is not C-contiguous"):
            comm.all_reduce(torch.ones(4, 4).T)
        with self.assertRaisesRegex(weft.InvalidArgument, "tensor of cpu, torch.sparse_coo"):
            comm.all_reduce(torch.ones(2, 2).to_sparse())
        with self.assertRaisesRegex(weft.InvalidArgument, "another sign than its memory.*resolve_conj"):
            comm.all_gather(torch.ones(2, dtype=torch.complex64).conj())


@unittest.skipIf(torch is None, "torch is not installed")
class TorchOptimizer(unittest.TestCase):
    def close(self, all_, wanted, tolerance=2e-6):
        for got in all_:
            for one, other in zip(got, wanted):
                self.assertLess(abs(one - other.numpy()).max(), tolerance)

    def test_adamw_of_all_degrees(self):
        def work(comm):
            every = []
            for degrees in ("data", "zero1", "zero2", "zero3", (2, 2, 2)):
                net = fresh(comm)
                every.append(steps(comm, net, sharded(comm, net, degrees=degrees)))
            return every

        wanted = serial(adamw)
        for rank in weft.run(work, 2, timeout=60):
            self.close(rank, wanted)

    def test_sgd_clipping_and_a_schedule(self):
        def sgd(net):
            return torch.optim.SGD(net.parameters(), 0.1, 0.9, weight_decay=0.1, nesterov=True)

        def work(comm):
            net = fresh(comm)
            options = dict(lr=0.1, momentum=0.9, nesterov=True, clip_norm=0.3)
            optimizer = sharded(comm, net, "sgd", **options)
            rates = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
            got = steps(comm, net, optimizer, rates=rates)
            assert optimizer.stats.clip < 1 and optimizer.stats.gradient_norm > 0.3
            return got

        self.close(weft.run(work, 2, timeout=60), serial(sgd, 0.3, schedule=True), 1e-5)

    def test_accumulation(self):
        def work(comm):
            net = fresh(comm)
            optimizer = sharded(comm, net, divisor=4)
            for step in range(STEPS):
                with optimizer.accumulate():
                    loss_of(net, step, 2 * comm.rank, 4).backward()
                loss_of(net, step, 2 * comm.rank + 1, 4).backward()
                optimizer.step()
            return [p.detach().numpy().copy() for p in net.parameters()]

        self.close(weft.run(work, 2, timeout=60), serial(adamw))

    def test_groups_names_and_checkpoints(self):
        def groups(net):
            named = dict(net.named_parameters())
            weights = [p for name, p in named.items() if name.endswith("weight")]
            biases = [p for name, p in named.items() if name.endswith("bias")]
            return [{"params": weights}, {"params": biases, "weight_decay": 0}]

        def grouped(net):
            return torch.optim.AdamW(groups(net), lr=0.01, weight_decay=0.1)

        def work(comm):
            net = fresh(comm)
            return steps(comm, net, sharded(comm, net, params=groups(net)))

        self.close(weft.run(work, 2, timeout=60), serial(grouped))
        with tempfile.TemporaryDirectory() as folder:

            def begin(comm):
                net = fresh(comm)
                optimizer = sharded(comm, net, params=net.named_parameters())
                steps(comm, net, optimizer, 0, 3)
                optimizer.save(folder, {"step": 3})

            def resume(comm):
                net = fresh(comm)
                optimizer = sharded(comm, net, params=net.named_parameters(), degrees="zero3")
                return steps(comm, net, optimizer, optimizer.load(folder)["step"])

            weft.run(begin, 2, timeout=60)
            for ranks in (1, 4):
                self.close(weft.run(resume, ranks, timeout=60), serial(adamw))

    def test_the_model_can_be_saved_and_outlives_the_optimizer(self):
        comm = weft.Communicator.all(1)[0]
        net, copy = model(), model()
        steps(comm, net, sharded(comm, net, degrees="zero3"))
        with tempfile.NamedTemporaryFile() as file:
            torch.save(net.state_dict(), file.name)
            copy.load_state_dict(torch.load(file.name))
        for one, other in zip(net.parameters(), copy.parameters()):
            self.assertTrue(torch.equal(one, other))

    def test_an_export_that_torch_loads(self):
        for degrees, kind, full in (("zero3", torch.float32, False), ("zero1", torch.bfloat16, True)):
            with tempfile.TemporaryDirectory() as folder:

                def work(comm):
                    net = fresh(comm).to(kind)
                    optimizer = sharded(comm, net, params=net.named_parameters(), degrees=degrees)
                    optimizer.export(f"{folder}/model.pt", full_precision=full)
                    copy = model()
                    copy.load_state_dict(torch.load(f"{folder}/model.pt"))
                    for one, other in zip(net.parameters(), copy.parameters()):
                        assert torch.equal(one.float(), other), (one, other)

                weft.run(work, 3, timeout=60)
                self.assertEqual(os.listdir(folder), ["model.pt"])

    def test_an_export_without_room_leaves_nothing(self):
        comm = weft.Communicator.all(1)[0]
        net = model()
        optimizer = sharded(comm, net, params=net.named_parameters())
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/model.pt")
            with self.assertRaises(OSError):
                optimizer.export(f"{folder}/model.pt")
            self.assertEqual(os.listdir(folder), ["model.pt"])

    def test_a_checkpoint_has_the_form_that_torch_reshards(self):
        """As torch.distributed.checkpoint's HuggingFaceStorageReader goes through it, which torch 1.13 has not (tests/torch/torch2_test.py)."""
        with tempfile.TemporaryDirectory() as folder:

            def work(comm):
                net = fresh(comm)
                optimizer = sharded(comm, net, params=net.named_parameters(), degrees="zero3")
                steps(comm, net, optimizer, 0, 3)
                optimizer.save(folder)
                return {name: p.detach().numpy().ravel() for name, p in net.named_parameters()}

            trained = weft.run(work, 3, timeout=60)[0]
            (step,) = glob.glob(f"{folder}/step-*")
            found = united(glob.glob(f"{step}/*.safetensors"))
        self.assertEqual({name.rpartition("/")[2] for name in found}, {"weight", "m", "v"})
        for name, values in trained.items():
            self.assertTrue(numpy.array_equal(found[f"{name}/weight"], values), name)

    def test_parameters_without_a_gradient(self):
        def work(comm):
            net = fresh(comm)
            optimizer = sharded(comm, net, weight_decay=0.0)
            unused = net[3].bias.detach().clone()
            net[0](torch.ones(1, 8)).sum().backward()
            optimizer.step()
            assert torch.equal(net[3].bias, unused)
            net.zero_grad(set_to_none=True)
            loss_of(net, 0).backward()  # into a gradient of torch's own, which is taken over
            assert net[0].weight.grad.data_ptr() == optimizer._gradients[0].data_ptr()
            optimizer.step()
            net[0].weight.grad = torch.ones_like(net[0].weight)  # and one that was set by hand
            before = net[0].weight.detach().clone()
            optimizer.step()
            assert bool((net[0].weight < before).all())

        weft.run(work, 2, timeout=60)

    def test_bfloat16(self):
        def work(comm):
            net = model(torch.bfloat16)
            optimizer = sharded(comm, net, stochastic=True, seed=3)
            losses = []
            for _ in range(30):
                losses.append(loss_of(net, 0, comm.rank, comm.size, torch.bfloat16))
                losses[-1].backward()
                optimizer.step()
            return float(losses[0]), float(losses[-1]), net[0].weight.float().detach().numpy()

        one, two = weft.run(work, 2, timeout=60)
        self.assertLess(one[1], 0.8 * one[0])
        self.assertTrue((one[2] == two[2]).all())

    def test_wrong_uses(self):
        comm = weft.Communicator.all(1)[0]
        net = model()
        optimizer = sharded(comm, net)
        loss_of(net, 0).backward()
        with self.assertRaisesRegex(weft.InvalidUsage, "call step.. first, or accumulate"):
            loss_of(net, 0).backward()
        with self.assertRaisesRegex(weft.InvalidUsage, "fix: call save"):
            optimizer.state_dict()
        with self.assertRaisesRegex(weft.InvalidUsage, "fix: call load"):
            optimizer.load_state_dict({})
        for params, pattern in (
            ([torch.nn.Parameter(torch.ones(2, dtype=torch.float64))], "types float64"),
            ([{"params": net.parameters(), "weight_decay": 0.3}], "weight_decay of 0.3"),
        ):
            with self.assertRaisesRegex(weft.InvalidArgument, pattern):
                sharded(comm, None, params=params)


if __name__ == "__main__":
    unittest.main()
