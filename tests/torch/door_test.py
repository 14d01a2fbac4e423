# SPDX-License-Identifier: Apache-2.0
"""Which import makes "weft" a back end of torch.distributed, and what a torch of another version is told."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]


def python(code, **variables):
    """What a new Python prints; it must end well."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env={**os.environ, **variables}, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


ALONE = """
import torch, torch.distributed as dist
dist.init_process_group("weft", store=dist.HashStore(), rank=0, world_size=1)
tensor = torch.ones(2)
dist.all_reduce(tensor)
print(tensor.tolist(), dist.get_backend())
"""


class Door(unittest.TestCase):
    def test_weft_before_torch(self):
        self.assertEqual(python("import weft, sys; assert 'torch' not in sys.modules" + ALONE), "[1.0, 1.0] weft\n")

    def test_torch_before_weft_which_is_imported_twice(self):
        code = "import torch, weft\nimport weft._torch_door as door\ndoor.arm(); door.arm()" + ALONE
        self.assertEqual(python(code), "[1.0, 1.0] weft\n")

    def test_the_end_without_destroy_process_group(self):
        """Also with a receive that nobody answers, and a call that nobody waits for."""
        code = "import weft" + ALONE + "group = dist.distributed_c10d._get_default_group()\n"
        self.assertEqual(python(code + "dist.all_reduce(tensor, async_op=True)\n"), "[1.0, 1.0] weft\n")

    def test_torch_of_another_version(self):
        code = """
import weft, torch
import torch.distributed as dist
torch.__version__ = "9.9.1+cpu"
try:
    dist.init_process_group("weft", store=dist.HashStore(), rank=0, world_size=1)
except ImportError as error:
    print(error)
"""
        said = python(code)
        self.assertIn("weft has no back end for torch 9.9.1+cpu", said)
        self.assertIn(f"built for torch {'.'.join(torch.__version__.split('.')[:2])}", said)
        self.assertIn("fix: use such a torch, or configure weft with -DWEFT_TORCH_PYTHON=", said)

    def test_no_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/torch.py", "w") as file:
                file.write("raise ImportError('no torch here')\n")
            code = f"import sys; sys.path.insert(0, {folder!r}); import weft; print(len(weft.__all__) > 0)"
            self.assertEqual(python(code), "True\n")

    def test_a_forked_child_that_ends(self):
        """As DataLoader's workers do: it must neither hang nor touch the group."""
        code = "import weft" + ALONE + """
import os, sys
sys.stdout.flush()
child = os.fork()
if child == 0:
    dist.destroy_process_group()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
dist.all_reduce(tensor)
dist.destroy_process_group()
"""
        self.assertEqual(python(code), "[1.0, 1.0] weft\n")

    @unittest.skipIf(re.match("[2-9].*debian", torch.__version__), "Debian's torch 2 has no libuv, which its launcher asks for")
    def test_the_commands_of_the_readme_work(self):
        text = re.search("^## PyTorch$(.*?)^## ", (ROOT / "README.md").read_text(), re.M | re.S)[1]
        (commands,) = re.findall("^```sh\n(.*?)^```$", text, re.M | re.S)
        commands = re.sub("^export PYTHONPATH=.*", "", commands, flags=re.M).replace("/usr/bin/python3", sys.executable)
        said = subprocess.run(["sh", "-ec", commands], cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"},
                              capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("step 100: loss 0.03", said.stdout)


if __name__ == "__main__":
    unittest.main()
