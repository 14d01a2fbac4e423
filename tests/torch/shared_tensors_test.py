# SPDX-License-Identifier: Apache-2.0
"""weft.use_shared_tensors(): large tensors lie in memory that ranks share, and behave as any."""

import gc
import io
import os
import subprocess
import sys
import unittest

import torch
import torch.distributed as dist
import torch.multiprocessing
import world

import weft

weft.use_shared_tensors()
LARGE = 1 << 20  # elements


def is_shared(tensor):
    """Does it lie in weft's memory? As /proc/self/maps has it."""
    at = tensor.data_ptr()
    with open("/proc/self/maps") as file:
        for line in file:
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            if begin <= at < end:
                return "memfd:weft" in line
    raise AssertionError("not mapped")


def in_a_child(work):
    """What work() returns in a forked child, as a DataLoader's worker is one."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(writer, repr(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader) as file:
        said = file.read()
    world.equal(os.waitpid(child, 0)[1], 0)
    return said


def twice(queue, back):
    tensor = queue.get()
    tensor *= 2
    back.put(float(tensor.sum()))


class Numbers(torch.utils.data.Dataset):
    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index] * torch.ones(LARGE // 8)


class SharedTensors(unittest.TestCase):
    def test_which_are_shared(self):
        self.assertTrue(is_shared(torch.zeros(LARGE)))
        self.assertTrue(is_shared(torch.empty(16384)))
        self.assertFalse(is_shared(torch.empty(16383)))
        weft.use_shared_tensors(4096)
        self.assertTrue(is_shared(torch.empty(1024)))
        weft.use_shared_tensors()
        self.assertFalse(is_shared(torch.empty(1024)))
        with self.assertRaisesRegex(ValueError, "least_bytes is 0"):
            weft.use_shared_tensors(0)

    def test_storages_grow_and_shrink(self):
        tensor = torch.arange(30000.0)
        tensor.resize_(2 * LARGE)
        self.assertTrue(is_shared(tensor) and torch.equal(tensor[:30000], torch.arange(30000.0)))
        tensor.resize_(10)
        tensor.untyped_storage().resize_(40) if hasattr(tensor, "untyped_storage") else tensor.storage().resize_(10)
        self.assertEqual(tensor.tolist(), list(map(float, range(10))))

    def test_memory_is_used_again(self):
        first = torch.ones(LARGE)
        at = first.data_ptr()
        del first
        gc.collect()
        again = torch.zeros(LARGE)
        self.assertEqual(again.data_ptr(), at)
        self.assertEqual(again.sum(), 0)

    def test_without_room_they_are_ordinary(self):
        """More than a heap of 64 MiB holds; the limits of file sizes and memory that users set make it small."""
        code = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, resource.RLIM_INFINITY))
import torch, weft, sys
sys.path.insert(0, %r)
weft.use_shared_tensors()
tensors = [torch.full((6 << 20,), float(i)) for i in range(4)]
from shared_tensors_test import is_shared
assert is_shared(tensors[0]) and not is_shared(tensors[3])
assert [t.mean().item() for t in tensors] == [0, 1, 2, 3]
""" % os.path.dirname(__file__)
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)

    def test_collectives_use_them(self):
        def work(rank, ranks):
            tensor = torch.full((LARGE,), float(rank + 1))
            assert is_shared(tensor)
            for _ in range(3):
                mine = tensor.clone()
                dist.all_reduce(mine)
                world.equal(mine, ranks * (ranks + 1) / 2)
            dist.destroy_process_group()
            world.equal(tensor, float(rank + 1))  # it outlives the group

        world.run(3, work)

    def test_ddp(self):
        def work(rank, ranks):
            torch.manual_seed(0)
            model = torch.nn.Linear(600, 600)
            assert is_shared(model.weight)
            wrapped = torch.nn.parallel.DistributedDataParallel(model)
            wrapped(torch.full((4, 600), rank + 1.0)).sum().backward()
            assert is_shared(model.weight.grad)
            world.equal(model.weight.grad, 4 * (ranks + 1) / 2)

        world.run(2, work)

    def test_a_child_has_its_own(self):
        tensor = torch.ones(LARGE)

        def change():
            tensor.mul_(5)
            return float(tensor.sum()), is_shared(torch.empty(LARGE)), float(torch.full((LARGE,), 2.0).mean())

        self.assertEqual(in_a_child(change), repr((5.0 * LARGE, True, 2.0)))
        self.assertEqual(tensor.sum(), LARGE)

    def test_data_loaders(self):
        values = torch.arange(float(LARGE))
        loader = torch.utils.data.DataLoader(Numbers(values), batch_size=2, num_workers=2, sampler=range(8))
        self.assertEqual([batch.mean().item() for batch in loader], [0.5, 2.5, 4.5, 6.5])

    def test_pickling_and_multiprocessing(self):
        tensor = torch.arange(float(LARGE))
        file = io.BytesIO()
        torch.save(tensor, file)
        file.seek(0)
        self.assertTrue(torch.equal(torch.load(file), tensor))
        context = torch.multiprocessing.get_context("fork")
        queue, back = context.Queue(), context.Queue()
        process = context.Process(target=twice, args=(queue, back))
        process.start()
        shared = torch.ones(LARGE)
        queue.put(shared)  # moves it into memory of PyTorch's own, which both see
        self.assertEqual(back.get(timeout=60), 2.0 * LARGE)
        process.join()
        self.assertEqual(shared.sum(), 2.0 * LARGE)

    def test_the_end_with_tensors_alive(self):
        code = """
import builtins, torch, weft
weft.use_shared_tensors()
builtins.kept = [torch.ones(1 << 20) for _ in range(3)]
torch.kept = builtins.kept
"""
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


if __name__ == "__main__":
    unittest.main()
