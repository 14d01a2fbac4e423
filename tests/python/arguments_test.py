# SPDX-License-Identifier: Apache-2.0
"""What cannot be called is refused with the sentence, and the communicator stays usable."""

import copy
import pickle
import unittest
from unittest import mock

import numpy
import weft

ONES = numpy.ones(4, "float32")


class Arguments(unittest.TestCase):
    def setUp(self):
        self.comm = weft.Communicator.all(1)[0]
        self.addCleanup(self.comm.close)

    def refused(self, pattern, call, *arguments, **how):
        with self.assertRaisesRegex(weft.InvalidArgument, pattern) as caught:
            call(*arguments, **how)
        error = caught.exception
        self.assertIsInstance(error, ValueError)
        self.assertEqual(error.result, weft.Result.INVALID_ARGUMENT)
        self.assertTrue(error.fix or error.message)
        self.assertEqual(self.comm.all_reduce(ONES)[0], 1)  # still usable

    def test_layouts(self):
        comm, matrix = self.comm, numpy.ones((4, 4), "float32")
        fix = r"send is not C-contiguous.*fix: pass numpy.ascontiguousarray"
        self.refused(fix, comm.all_reduce, matrix[:, 1])
        self.refused(fix, comm.all_reduce, numpy.asfortranarray(matrix))
        self.refused("out is not C-contiguous", comm.all_reduce, matrix, out=matrix.T[::2])

    def test_read_only(self):
        frozen = ONES.copy()
        frozen.flags.writeable = False
        self.assertEqual(self.comm.all_reduce(frozen)[0], 1)  # to read it is all right
        self.refused("out is read-only; fix: pass an array", self.comm.all_reduce, ONES, out=frozen)
        self.refused("out is read-only", self.comm.recv, b"abcd", 0)

    def test_types(self):
        comm = self.comm
        self.refused(r"2 bytes of type 'int16'.*fix: convert", comm.all_reduce, numpy.ones(2, "i2"))
        self.refused("unknown to weft", comm.all_reduce, numpy.ones(2, ">f4"))
        self.refused("unknown to weft", comm.all_reduce, numpy.ones(2, "M8[s]"))
        self.refused(
            "out has elements of type float64, the other buffer of float32",
            comm.all_reduce,
            ONES,
            out=numpy.ones(4),
        )
        self.refused("send has bools; fix: op='bor'", comm.all_reduce, ONES > 0)
        self.refused("complex", comm.all_reduce, numpy.ones(2, "c8"), op="max")
        self.refused("bitwise", comm.all_reduce, ONES, op="bxor")
        self.refused("gives no memory", comm.all_reduce, 3.5)
        self.refused("gives no memory", comm.all_reduce, [1, 2])
        self.refused("Python objects; fix: pickle", comm.all_gather, numpy.array([None]))

    def test_masks(self):
        masked = numpy.ma.array(ONES, mask=[0, 1, 0, 0])
        self.refused("send is a masked array.*fix: pass x.filled", self.comm.all_reduce, masked)
        self.assertEqual(self.comm.all_reduce(masked.filled(3))[1], 3)

    def test_ranks_that_are_none(self):
        for root in 0.0, "0", None:
            self.refused("no whole number; fix", self.comm.broadcast, ONES, root=root)
        self.refused("no whole number; fix", self.comm.send, ONES, "next")
        self.assertEqual(self.comm.broadcast(ONES, root=numpy.int64(0))[0], 1)

    def test_no_torch(self):
        with mock.patch.dict("sys.modules", {"torch": None}):
            with self.assertRaisesRegex(ModuleNotFoundError, "has no PyTorch; fix:"):
                weft.use_shared_tensors()

    def test_shapes_that_are_none(self):
        for shape in (2, -1), None, "4", 1.5, (2, "a"):
            self.refused(r"empty\(\): shape is .*fix: pass whole numbers", weft.empty, shape)
        self.refused("more than an address space has", weft.empty, 2**62)
        self.refused("dtype is 'x'.*fix: pass a type of numpy", weft.empty, 2, "x")
        self.refused("dtype is of Python objects", weft.empty, 2, object)
        self.assertEqual(weft.empty(numpy.int64(3)).shape, (3,))

    def test_named_types(self):
        comm = self.comm
        self.refused(
            "dtype 'float8' is no element type; fix: one of int8",
            comm.all_reduce,
            ONES,
            dtype="float8",
        )
        self.refused(
            "16 bytes in elements of 4, not bfloat16s", comm.all_reduce, ONES, dtype="bfloat16"
        )
        self.refused("5 bytes in elements of 1", comm.all_reduce, bytes(5), dtype="float32")

    def test_sizes(self):
        comm = self.comm
        self.refused(
            "out has 5 elements of 4 bytes, not 4; fix: pass 16 bytes",
            comm.all_reduce,
            ONES,
            out=numpy.ones(5, "float32"),
        )
        self.refused(r"counts is \[1, 2\] for 1 ranks", comm.all_gather_v, ONES, [1, 2])
        self.refused(r"counts is \[-4\]", comm.all_gather_v, ONES, [-4])
        self.refused("send has 4 elements of 4 bytes, not 3", comm.all_gather_v, ONES, [3])
        self.refused(
            "out has 4 elements, blocks reach to 5",
            comm.all_gather_v,
            ONES,
            [4],
            [1],
            out=ONES.copy(),
        )
        self.refused("root passes no counts; fix: pass counts", comm.gather_v, ONES)
        self.refused("send has 4 elements, blocks reach to 6", comm.scatter_v, ONES, [6])
        self.refused(
            "out has 3 elements, blocks reach to 4",
            comm.all_to_all_v,
            ONES,
            [4],
            [4],
            out=ONES[:3].copy(),
        )
        self.refused("send has 4 elements, blocks reach to 6", comm.reduce_scatter_v, ONES, [6])

    def test_operations(self):
        comm = self.comm
        self.refused(
            "op 'median' is no operation; fix: one of sum", comm.all_reduce, ONES, op="median"
        )
        with comm.pre_mul_sum(2.0, "float64") as twice:
            self.refused("op is closed, or for float64", comm.all_reduce, ONES, op=twice)
        self.refused("op is closed", comm.all_reduce, numpy.ones(2), op=twice)
        self.refused("300 is no int8", comm.pre_mul_sum, 300, "int8")

    def test_the_library_refuses(self):
        comm = self.comm
        self.refused("root is 1", comm.broadcast, ONES, root=1)
        both = numpy.ones(9, "float32")
        self.refused("overlap", comm.all_reduce, both[:8], out=both[1:])
        with self.assertRaisesRegex(weft.InvalidUsage, "unknown algorithm 'no-such'"):
            comm.all_reduce(ONES, algorithm="no-such")
        self.refused("the id has 3 bytes, not 128", weft.Communicator.join, b"abc", 1, 0)

    def test_names(self):
        with self.assertRaisesRegex(TypeError, "all_reduce.. has no option time; it has algorithm"):
            self.comm.all_reduce(ONES, time=3)
        with self.assertRaisesRegex(TypeError, "has no setting colour; it has timeout_ms"):
            weft.Communicator.all(1, colour=3)

    def test_closed(self):
        comm, self.comm = self.comm, weft.Communicator.all(1)[0]
        comm.close()
        comm.close()
        closed = r"%s\(\): the communicator was closed by close\(\); fix: call it before"
        self.refused(closed % "all_reduce", comm.all_reduce, ONES)
        for name in "barrier", "finalize", "abort", "error", "mem_stats", "edges":
            self.refused(closed % name, getattr(comm, name))
        self.refused(closed % "split", comm.split, 0)
        self.refused(closed % "register", comm.register, ONES)
        with self.comm as inner:
            pass
        self.comm = weft.Communicator.all(1)[0]
        self.refused("closed by the end of its `with`; fix", inner.all_reduce, ONES)

    def test_numbers_that_do_not_fit(self):
        """ctypes takes their lowest bits."""
        comm = self.comm
        self.refused("root is 4294967296; fix: pass a rank from 0 to 0", comm.broadcast, ONES, 2**32)
        self.refused("peer is 4294967296", comm.send, ONES, 2**32)
        self.refused("key is 4294967296; fix: pass a whole number", comm.split, 0, 2**32)
        for value in 2**33 + 5, 1.5, "5", float("inf"):
            self.refused("timeout_ms is", comm.all_reduce, ONES, timeout_ms=value)
            self.refused("timeout_ms is", weft.Communicator.all, 1, timeout_ms=value)
        self.refused("count is -1", comm.explain, "all_reduce", -1)
        self.refused("ranks is '4'; fix: pass a whole number from 1", weft.Communicator.all, "4")
        self.refused("ranks is 1099511627776", weft.Communicator.all, 2**40)
        self.refused("rank is None", weft.Communicator.join, bytes(128), 1, None)
        self.refused("the id is a str; fix", weft.Communicator.join, "0" * 128, 1, 0)

    def test_counts_are_read_once(self):
        """What checks saw of an iterator was empty, and the library wrote behind a new array."""
        comm = self.comm
        self.assertEqual(comm.gather_v(ONES, iter([4])).tolist(), [1] * 4)
        self.assertEqual(comm.all_to_all_v(ONES, iter([4]), iter([4])).tolist(), [1] * 4)
        for counts in None, 4, ["4"], [4.5], [2**64], [4, 4]:
            self.refused("counts is .* for 1 ranks; fix: pass 1 whole", comm.all_gather_v, ONES, counts)
        self.refused("displs is .*0.5", comm.all_gather_v, ONES, [4], [0.5])

    def test_texts(self):
        comm = self.comm
        for value in 3, "a\0b", "\ud800":
            self.refused("algorithm is .*fix: pass a str", comm.all_reduce, ONES, algorithm=value)
            self.refused("label is", comm.all_reduce, ONES, label=value)
            self.refused("name is", weft.Communicator.all, 1, name=value)
        self.refused("collective is 3", weft.algorithms, 3)

    def test_streams(self):
        stream = weft.Stream()
        stream.close()
        self.refused("the stream was closed; fix", self.comm.all_reduce, ONES, stream=stream)
        self.refused("the stream was closed; fix", stream.synchronize)
        self.refused("stream is 3; fix: pass a weft.Stream", self.comm.all_reduce, ONES, stream=3)
        self.refused("event is None; fix", weft.Stream().wait, None)

    def test_operators_of_others(self):
        other = weft.Communicator.all(1)[0]
        self.addCleanup(other.close)
        theirs = other.pre_mul_sum(2.0)
        self.refused("op is of another communicator", self.comm.all_reduce, ONES, op=theirs)
        self.refused("op None is no operation", self.comm.all_reduce, ONES, op=None)

    def test_launch(self):
        def call(*arguments, **how):
            return weft.run(*arguments, **{"ranks": 1, "timeout": 60, **how})

        def fn(comm):
            raise AssertionError("nobody is started")

        self.refused("ranks is '4'; fix: pass a whole number", call, fn, ranks="4")
        self.refused("fn is None; fix: pass a function", call, None)
        self.refused("args is 3; fix: pass a tuple", call, fn, args=3)
        self.refused("start is 'thread'; fix: one of", call, fn, start="thread")
        self.refused("timeout is '5'; fix: pass seconds", call, fn, timeout="5")
        self.refused("grace is -1; fix", call, fn, grace=-1)
        self.refused("timeout_ms is 'x'", call, fn, settings={"timeout_ms": "x"})
        self.refused("settings is 3; fix: pass a dict", call, fn, settings=3)

    def test_copies(self):
        for copied in copy.copy, copy.deepcopy, pickle.dumps:
            with self.assertRaisesRegex(weft.InvalidUsage, "of this process.*fix: make one there"):
                copied(self.comm)

    def test_rows_that_ranks_do_not_divide(self):
        def work(comm):
            for call in (comm.reduce_scatter, comm.all_to_all):
                with self.assertRaisesRegex(weft.InvalidArgument, "3 rows for 2 ranks"):
                    call(numpy.ones((3, 2)))
            if comm.rank == 1:
                with self.assertRaisesRegex(weft.InvalidArgument, "rank 1.*no out; fix: pass out="):
                    comm.scatter(None)

        weft.run(work, ranks=2, timeout=60)


if __name__ == "__main__":
    unittest.main()
