# SPDX-License-Identifier: Apache-2.0
"""What goes wrong between ranks is an exception of its class, with who and what as fields."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import unittest

import numpy
import weft


def error_of(call, *arguments, **how):
    """(class, fields) of the error that a call raises."""
    try:
        call(*arguments, **how)
    except weft.Error as error:
        return error
    raise AssertionError("no error")


class Errors(unittest.TestCase):
    def test_a_late_rank(self):  # which is told, too
        ended = multiprocessing.Event()

        def work(comm):
            if comm.rank == 1:
                ended.wait(60)
            error = error_of(comm.barrier, timeout_ms=200)
            ended.set()
            return error

        error = weft.run(work, ranks=2, timeout=30)[0]
        self.assertIsInstance(error, weft.Timeout)
        self.assertIsInstance(error, TimeoutError)
        self.assertEqual((error.rank, error.missing_ranks), (1, (1,)))
        self.assertIn("barrier() #1", error.call)
        self.assertTrue(error.fix and error.fix in str(error) and error.message in str(error))

    def test_a_variable_that_is_refused(self):
        os.environ["WEFT_LANES"] = "none"
        self.addCleanup(os.environ.pop, "WEFT_LANES")
        error = error_of(weft.Communicator.from_environment)
        self.assertIsInstance(error, weft.InvalidArgument)
        self.assertEqual(error.variable, "WEFT_LANES")

    def test_ranks_that_disagree(self):
        def work(comm):
            call = comm.barrier if comm.rank else lambda: comm.all_reduce(numpy.ones(3))
            return error_of(call)

        for error in weft.run(work, ranks=2, timeout=30):
            self.assertIsInstance(error, weft.Mismatch)
            self.assertEqual(error.result, weft.Result.MISMATCH)
            self.assertRegex(str(error), "(?s)barrier.*all_reduce|all_reduce.*barrier")

    def test_a_killed_rank(self):
        def work(comm):
            if comm.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            error = error_of(comm.all_reduce, numpy.ones(3))
            self.assertIsInstance(error, ConnectionError)
            again = error_of(comm.barrier)
            self.assertEqual(again.rank, error.rank)
            self.assertEqual(comm.error().rank, 1)
            raise error

        with self.assertRaises(weft.RankError) as caught:
            weft.run(work, ranks=3, timeout=30)
        self.assertEqual(caught.exception.rank, 1)
        self.assertIn("died of SIGKILL", str(caught.exception))
        error = caught.exception.errors[2]
        self.assertIsInstance(error, weft.RemoteError)
        self.assertEqual((error.rank, bool(error.host), error.pid > 0), (1, True, True))

    def test_abort(self):
        comm = weft.Communicator.all(1)[0]
        comm.abort()
        self.assertIsInstance(error_of(comm.barrier), weft.Aborted)

    def test_an_error_travels(self):
        error = weft.Error.of(weft.Result.REMOTE_ERROR, "rank 1 died; fix: look", rank=1, pid=7)
        error.add_note("a note")
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual(type(copy), weft.RemoteError)
        self.assertEqual(
            (str(copy), copy.info, copy.__notes__), (str(error), error.info, ["a note"])
        )
        with self.assertRaises(AttributeError):
            copy.colour

    def test_all_results_have_a_class(self):
        for result in weft.Result:
            self.assertEqual(weft.Error.of(result, "x").result, result)


class Library(unittest.TestCase):
    def imported(self, **environment):
        command = [sys.executable, "-c", "import weft"]
        environment = {**os.environ, **environment}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)

    def test_a_library_that_is_not_there(self):
        ended = self.imported(WEFT_LIBRARY="/nowhere/libweft.so")
        self.assertIn("ImportError: libweft.so was not found; fix: install libweft0", ended.stderr)
        self.assertIn("/nowhere/libweft.so", ended.stderr)

    def test_the_library_that_is_asked_for(self):
        with open("/proc/self/maps") as maps:
            path = next(line.split()[-1] for line in maps if "libweft.so" in line)
        ended = self.imported(WEFT_LIBRARY=path)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_torch_and_numpy_are_not_needed(self):
        code = (
            "import sys; sys.modules['numpy'] = sys.modules['torch'] = None; import weft\n"
            "comm = weft.Communicator.from_environment()\n"
            "data = weft.empty(8, 'float32')\n"
            "assert comm.all_reduce(data, out=data, dtype='float32').nbytes == 32\n"
            "assert comm.all_reduce(bytearray(3)).tobytes() == bytes(3)\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=30)

    def test_import_does_not_import_torch(self):
        code = "import sys, weft; sys.exit('torch' in sys.modules)"
        subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


if __name__ == "__main__":
    unittest.main()
