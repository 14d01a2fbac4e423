# SPDX-License-Identifier: Apache-2.0
"""weft.run: results by rank, the exception of the rank that caused it, and an end in any case."""

import multiprocessing
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import numpy
import weft


def importable(comm, factor):
    return float(comm.all_reduce(numpy.ones(3))[0] * factor)


def fails(comm):
    if comm.rank == 1:
        raise ZeroDivisionError("by rank 1")
    comm.barrier()


class Unpicklable(Exception):
    def __init__(self, a, b):
        super().__init__("only here")


class Run(unittest.TestCase):
    def error_of(self, work, **how):
        begin = time.monotonic()
        with self.assertRaises(weft.RankError) as caught:
            weft.run(work, **{"ranks": 2, "timeout": 30, **how})
        self.assertLess(time.monotonic() - begin, 25)
        return caught.exception

    def test_results_by_rank(self):
        big = numpy.arange(1 << 17)  # more than a pipe holds
        got = weft.run(lambda comm, x: x + comm.rank, 4, (big,), timeout=30)
        for rank, each in enumerate(got):
            self.assertTrue((each == big + rank).all())
        self.assertEqual(weft.run(importable, 2, (10,), start="spawn", timeout=30), [20, 20])

    def test_settings(self):
        ended = multiprocessing.Event()

        def work(comm):
            try:
                comm.rank or ended.wait(60)
                comm.barrier()
            except weft.Timeout as error:
                return str(error)
            finally:
                ended.set()

        said = weft.run(work, 2, settings={"timeout_ms": 100, "name": "mine"}, timeout=30)[1]
        self.assertIn("communicator mine timed out after 100 ms", said)

    def test_the_rank_that_caused_it_is_told(self):
        error = self.error_of(fails, ranks=3)
        self.assertEqual(error.rank, 1)
        self.assertIsInstance(error.__cause__, ZeroDivisionError)
        self.assertIn("rank 1 of 3: ZeroDivisionError: by rank 1", str(error))
        self.assertIn("in fails", error.__cause__.__notes__[0])
        self.assertIsInstance(error.errors[0], weft.RemoteError)

    def test_a_rank_that_ends(self):
        error = self.error_of(lambda comm: comm.rank or os._exit(3))
        self.assertIn("rank 0 of 2 ended with exit code 3 and without an answer", str(error))
        self.assertEqual(error.rank, 0)
        self.assertIn("SystemExit", str(self.error_of(lambda comm: sys.exit(1))))

    def test_a_rank_that_does_not_end(self):
        error = self.error_of(lambda comm: comm.rank or time.sleep(60), timeout=0.5)
        self.assertIn("rank 0 of 2 gave no answer within 0.5 s", str(error))

        def work(comm):
            time.sleep(60 * comm.rank)
            raise NameError

        error = self.error_of(work, grace=0.5)
        self.assertIsInstance(error.__cause__, NameError)
        self.assertIn("within 0.5 s of another rank's failure", str(error.errors[1]))

    def test_what_cannot_travel(self):
        self.assertIn("pickle", str(self.error_of(lambda comm: lambda: 0)))

        def work(comm):
            raise Unpicklable(1, 2)

        self.assertIn("only here", str(self.error_of(work)))

    def test_no_ranks(self):
        with self.assertRaisesRegex(weft.InvalidUsage, "0 ranks; fix: ask for 1"):
            weft.run(fails, ranks=0)

    def test_ranks_of_ranks(self):
        comm = weft.Communicator.all(1)[0]

        def work(mine):
            with self.assertRaisesRegex(weft.InvalidUsage, "before fork"):
                comm.barrier()
            return mine.size

        self.assertEqual(weft.run(work, 2, timeout=30), [2, 2])
        self.assertEqual(comm.all_reduce(numpy.ones(1))[0], 1)


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return str(held.getsockname()[1])


PROGRAM = """
import numpy, weft
with weft.Communicator.from_environment() as comm:
    total = comm.all_reduce(numpy.ones(2) + comm.rank)
    print(f"{comm.rank} of {comm.size}: {total[0]:g}", flush=True)
"""


class Launchers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = pathlib.Path(folder.name) / "program.py"
        self.program.write_text(PROGRAM)
        self.command = [sys.executable, str(self.program)]

    def check(self, output):
        # Not by lines: mpirun may put those of two ranks on one.
        self.assertEqual(sorted(re.findall(r"\d of 2: 3", output)), ["0 of 2: 3", "1 of 2: 3"])

    def by_variables(self, each):
        started = [
            subprocess.Popen(
                self.command, env={**os.environ, **each(r)}, stdout=subprocess.PIPE, text=True
            )
            for r in range(2)
        ]
        self.check("".join(process.communicate(timeout=30)[0] for process in started))

    def test_as_torchrun_sets_them(self):
        shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
        self.by_variables(lambda rank: {**shared, "RANK": str(rank), "WEFT_AUTH": "off"})

    def test_by_hand(self):
        shared = {"WEFT_SIZE": "2", "WEFT_ROOT": f"127.0.0.1:{free_port()}", "WEFT_SECRET": "hush"}
        self.by_variables(lambda rank: {**shared, "WEFT_RANK": str(rank)})

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_mpirun(self):
        allow = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        environment = {**os.environ, **allow, "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        command = ["mpirun", "-n", "2", *self.command]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        self.check(ended.stdout)

    def test_alone(self):
        ended = subprocess.run(self.command, capture_output=True, text=True, timeout=30)
        self.assertEqual(ended.stdout, "0 of 1: 1\n")


if __name__ == "__main__":
    unittest.main()
