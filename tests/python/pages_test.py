# SPDX-License-Identifier: Apache-2.0
"""What the pages show of Python is the example, and the README's commands work as pasted."""

import pathlib
import re
import shutil
import subprocess
import unittest

import weft

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = pathlib.Path(weft.__file__).parents[1]


def section(page, title):
    return re.search(rf"^## {title}$(.*?)^## ", (ROOT / page).read_text(), re.M | re.S)[1]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


class Pages(unittest.TestCase):
    def test_the_example_is_what_they_show(self):
        example = (ROOT / "examples/all_reduce.py").read_text().split("\n", 1)[1]
        self.assertEqual(blocks(section("README.md", "Python"), "python"), [example])
        self.assertIn(example, blocks((ROOT / "docs/python.md").read_text(), "python"))

    def test_the_commands_of_the_readme_work(self):
        (commands,) = blocks(section("README.md", "Python"), "sh")
        commands = commands.replace("build/release/python", str(BUILT))
        if not shutil.which("mpirun"):
            commands = re.sub("^mpirun.*", "", commands, flags=re.M)
        root = "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
        script = f"set -e; {root} OMPI_MCA_rmaps_base_oversubscribe=1\n{commands}"
        run = dict(cwd=ROOT, capture_output=True, text=True, timeout=100)
        ended = subprocess.run(["sh", "-c", script], **run)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        said = ended.stdout.splitlines()
        self.assertEqual(said[0], str([b"weft " * 4] * 4))
        self.assertEqual(said[1], "rank 0 of 1: the sum is 1")
        if "mpirun" in commands:
            ranks = re.findall(r"rank (\d) of 2: the sum is 3", ended.stdout)
            self.assertEqual(sorted(ranks), ["0", "1"])  # mpirun may put two on one line


if __name__ == "__main__":
    unittest.main()
