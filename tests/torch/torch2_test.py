# SPDX-License-Identifier: Apache-2.0
"""What torch 2 builds on a back end: functional collectives, DTensor, FSDP2, checkpoints; weights are compared with Gloo's."""

import datetime
import shutil
import tempfile
import unittest

import torch
import torch.distributed as dist
from world import backend_of, equal, raises, run

import weft

LONG = datetime.timedelta(seconds=20)


def total(ranks):
    return ranks * (ranks + 1) // 2


def model():
    torch.manual_seed(3)
    return torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU()) for _ in range(3)])


def functional(rank, ranks):
    import torch.distributed._functional_collectives as fc

    everybody, mine = list(range(ranks)), torch.full((ranks, 2), rank + 1.0)
    equal(fc.all_reduce(mine, "sum", everybody).clone(), total(ranks))
    equal(fc.all_gather_tensor(mine, 0, everybody)[::ranks, 0].clone(), torch.arange(1.0, ranks + 1))
    equal(fc.reduce_scatter_tensor(mine, "sum", 0, everybody).clone(), total(ranks))
    equal(fc.all_to_all_single(mine, None, None, everybody)[:, 0].clone(), torch.arange(1.0, ranks + 1))
    for sums in fc.all_reduce_coalesced([mine, mine[:1]], "sum", everybody):
        equal(sums.clone(), total(ranks))
    whole, row = fc.all_gather_into_tensor_coalesced([mine, mine[:1]], everybody)
    equal((tuple(whole.shape), tuple(row.shape)), ((ranks * ranks, 2), (ranks, 2)))
    for sums in fc.reduce_scatter_tensor_coalesced([mine, mine], "sum", [0, 0], everybody):
        equal(sums.clone(), total(ranks))


def coalesced(rank, ranks):
    tensors = [torch.full((3,), rank + 1.0), torch.full((5,), rank + 1.0)]
    with dist.distributed_c10d._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    for tensor in tensors:
        equal(tensor, total(ranks))


def distributed_tensors(rank, ranks):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (ranks,))
    equal(dist.get_backend(mesh.get_group()), "weft")
    torch.manual_seed(0)
    a, b = torch.randn(4 * ranks, 8), torch.randn(8, 4 * ranks)
    for left, right in ((Shard(0), Replicate()), (Shard(1), Shard(0))):
        product = distribute_tensor(a, mesh, [left]) @ distribute_tensor(b, mesh, [right])
        assert torch.allclose(product.full_tensor(), a @ b, atol=1e-4)
    moved = distribute_tensor(a, mesh, [Shard(0)]).redistribute(mesh, [Shard(1)])
    equal(moved.full_tensor(), a)


def saved(rank, ranks):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    folder = [tempfile.mkdtemp()] if rank == 0 else [None]
    dist.broadcast_object_list(folder)
    mesh = init_device_mesh("cpu", (ranks,))
    whole = torch.arange(12.0 * ranks).view(-1, 3)
    dcp.save({"a": distribute_tensor(whole, mesh, [Shard(0)])}, checkpoint_id=folder[0])
    back = {"a": distribute_tensor(torch.zeros_like(whole), mesh, [Shard(0)])}
    dcp.load(back, checkpoint_id=folder[0])
    equal(back["a"].full_tensor(), whole)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder[0])


def fully_sharded(rank, ranks):
    """With two ranks a sum has one result: the weights are Gloo's, bit for bit."""
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    weights = []
    for backend in ("gloo", "weft"):
        mesh = DeviceMesh.from_group(dist.new_group(backend=backend), "cpu")
        sharded = model()
        for layer in sharded:
            fully_shard(layer, mesh=mesh)
        fully_shard(sharded, mesh=mesh)
        optimizer = torch.optim.SGD(sharded.parameters(), lr=0.1)
        data = torch.Generator().manual_seed(rank)
        for _ in range(3):
            optimizer.zero_grad()
            sharded(torch.randn(8, 16, generator=data)).square().sum().backward()
            optimizer.step()
        weights.append([p.full_tensor().detach().clone() for p in sharded.parameters()])
    for got, wanted in zip(*reversed(weights)):
        equal(got, wanted)


def hooked(rank, ranks):
    """PowerSGD's callbacks wait for futures of calls that they make."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    states = {default_hooks.fp16_compress_hook: None, weft.bf16_hook: None,
              powerSGD_hook.powerSGD_hook: powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2)}
    for hook, state in states.items():
        wrapped = torch.nn.parallel.DistributedDataParallel(model())
        wrapped.register_comm_hook(state, hook)
        for _ in range(4):
            wrapped(torch.randn(4, 16)).sum().backward()


def split(rank, ranks):
    group = dist.distributed_c10d._get_default_group()
    if not hasattr(group, "split_group"):
        return
    part = group.split_group([0, ranks - 1], LONG)
    equal(part is None, rank not in (0, ranks - 1))
    if part is not None:
        tensor = torch.ones(2)
        part.allreduce([tensor]).wait()
        equal(tensor, 2)


def ended(rank, ranks):
    """abort() ends what is in flight; calls after it are refused."""
    group = dist.new_group(backend="weft")
    backend = backend_of(group)
    if not hasattr(backend, "abort"):
        return
    pending = dist.irecv(torch.ones(1), (rank + 1) % ranks, group=group)
    backend.abort()
    with raises(RuntimeError, "destroyed"):
        pending.wait()
    for call in (dist.all_reduce, lambda tensor, group: dist.send(tensor, (rank + 1) % ranks, group=group)):
        with raises(RuntimeError, "this process group has been destroyed", "fix:"):
            call(torch.ones(1), group=group)


def given_time(rank, ranks):
    backend = backend_of(dist.distributed_c10d._get_default_group())
    if hasattr(backend, "set_timeout"):
        backend.set_timeout(datetime.timedelta(milliseconds=100))
        if rank == 1:
            with raises(RuntimeError, "within 100 ms"):
                dist.recv(torch.zeros(1), 0)
        backend.set_timeout(LONG)
    dist.barrier()


@unittest.skipIf(torch.__version__.startswith("1."), "of torch 2")
class Torch2(unittest.TestCase):
    """A test for each function above."""

    def test_checkpoints_of_the_sharded_optimizer(self):
        try:
            import safetensors  # noqa: F401, the reader's
            from torch.distributed.checkpoint import HuggingFaceStorageReader, load
        except ImportError:
            self.skipTest("needs PyTorch 2.8, and safetensors")
        with tempfile.TemporaryDirectory() as folder:

            def work(comm):
                net = model()
                optimizer = weft.ShardedOptimizer(net.named_parameters(), "adamw", comm=comm, lr=0.1, degrees="zero3")
                net(torch.ones(2, 16)).sum().backward()
                optimizer.step()
                optimizer.save(folder)
                return {name: p.detach().numpy() for name, p in net.named_parameters()}

            trained = weft.run(work, ranks=3, timeout=60)[0]
            found = {f"{name}/weight": torch.zeros(values.size) for name, values in trained.items()}
            load(found, storage_reader=HuggingFaceStorageReader(f"{folder}/step-00000001"))
        for name, values in trained.items():
            equal(found[f"{name}/weight"], torch.from_numpy(values).ravel())

    @unittest.skipIf(torch.__version__.startswith("2.6"), "2.6 has no FSDP2 on CPUs")
    def test_fully_sharded(self):
        run(2, fully_sharded)


for function in (functional, coalesced, distributed_tensors, saved, hooked, split, ended, given_time):
    setattr(Torch2, f"test_{function.__name__}", lambda self, function=function: run(3, function))

if __name__ == "__main__":
    unittest.main()
