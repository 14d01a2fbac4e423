# SPDX-License-Identifier: Apache-2.0
"""Calls on streams are futures: of results and of errors, awaited, called back, in groups."""

import asyncio
import concurrent.futures
import gc
import multiprocessing
import subprocess
import sys
import threading
import unittest

import numpy
import weft


def results(comm):
    stream = weft.Stream()
    data = [numpy.full(1000, i + comm.rank, "float32") for i in range(20)]
    futures = [comm.all_reduce(each, stream=stream) for each in data]
    done, _ = concurrent.futures.wait(futures, timeout=20)
    assert len(done) == len(futures) and not futures[0].cancel()
    for i, future in enumerate(futures):
        assert (future.result() == sum(i + rank for rank in range(comm.size))).all()
    stream.synchronize()
    assert stream.done()


def exchange(comm):
    stream, other = weft.Stream(), (comm.rank + 1) % comm.size
    before = (comm.rank - 1) % comm.size
    for _ in range(3):
        with weft.group():
            sent = comm.send(numpy.full(5, comm.rank), other, stream=stream)
            got = comm.recv(numpy.empty(5, int), before, stream=stream)
            assert not got.done()
        assert (got.result(20) == before).all() and sent.result(20) is None


def awaited(comm):
    async def both():
        stream = weft.Stream()
        calls = [comm.all_gather(numpy.array([comm.rank]), stream=stream) for _ in range(2)]
        return await asyncio.gather(*map(asyncio.wrap_future, calls))

    for got in asyncio.run(both()):
        assert got.tolist() == list(range(comm.size))


def dropped(comm):
    """Neither the stream nor the arrays are held by anybody but the call."""
    future = comm.all_reduce(numpy.full(1 << 18, 1.0), stream=weft.Stream())
    gc.collect()
    assert (future.result(20) == comm.size).all()
    called = threading.Event()
    stream = weft.Stream()
    future = comm.barrier(stream=stream)
    future.add_done_callback(lambda _, held=stream: called.set())
    del stream, future
    assert called.wait(20)


class Streams(unittest.TestCase):
    def test_futures(self):
        def work(comm):
            results(comm), exchange(comm), awaited(comm), dropped(comm)

        for ranks in (1, 2, 3):
            weft.run(work, ranks=ranks, timeout=60)

    def test_errors(self):
        ended = multiprocessing.Event()

        def work(comm):
            if comm.rank == 1:
                ended.wait(60)
                return comm.error()
            stream = weft.Stream()
            late = comm.barrier(stream=stream, timeout_ms=150)
            later = comm.all_reduce(numpy.ones(2), stream=stream)
            alone = weft.Communicator.all(1)[0].all_reduce(numpy.ones(2), stream=stream)
            errors = late.exception(), later.exception(), alone.exception()
            ended.set()
            return errors

        late, later, alone = weft.run(work, ranks=2, timeout=30)[0]
        self.assertIsInstance(late, weft.Timeout)
        self.assertEqual(late.missing_ranks, (1,))
        self.assertIsInstance(later, weft.Timeout)
        self.assertIsNone(alone)  # of another communicator

    def test_argument_errors_are_raised_at_once(self):
        comm, stream = weft.Communicator.all(1)[0], weft.Stream()
        with self.assertRaises(weft.InvalidArgument):
            comm.broadcast(numpy.ones(2), root=5, stream=stream)
        self.assertEqual(comm.all_reduce(numpy.ones(2), stream=stream).result().sum(), 2)

    def test_events(self):
        first, second = weft.Stream(), weft.Stream()
        start, end = weft.Event(), weft.Event()
        comm = weft.Communicator.all(1)[0]
        start.record(first)
        comm.barrier(stream=first)
        end.record(first)
        second.wait(end)
        comm.barrier(stream=second).result()
        end.synchronize()
        self.assertTrue(start.done() and end.done())
        self.assertGreaterEqual(end.since(start), 0)
        with self.assertRaises(weft.InvalidUsage):
            end.since(weft.Event())

    def test_a_group_that_fails_tells_its_futures(self):
        comm, stream = weft.Communicator.all(1)[0], weft.Stream()
        comm.abort()
        futures = []
        with self.assertRaises(weft.Aborted):
            with weft.group():
                futures.append(comm.barrier(stream=stream))
                comm.all_reduce(numpy.ones(1))
        self.assertIsInstance(futures[0].exception(20), weft.Aborted)

    def test_an_exception_ends_the_group(self):
        comm = weft.Communicator.all(1)[0]
        with self.assertRaises(KeyError):
            with weft.group():
                comm.barrier()
                raise KeyError
        self.assertEqual(comm.all_reduce(numpy.ones(1))[0], 1)

    def test_threads_have_a_rank_each(self):
        comms = weft.Communicator.all(3)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            totals = list(pool.map(lambda comm: comm.all_reduce(numpy.ones(9))[0], comms))
        self.assertEqual(totals, [3, 3, 3])

    def test_the_interpreter_may_end_with_work_queued(self):
        code = (
            "import weft, numpy\n"
            "comms = weft.Communicator.all(2)\n"
            "stream = weft.Stream()\n"
            "future = comms[0].all_reduce(numpy.ones(1 << 20), stream=stream)\n"
        )
        ended = subprocess.run([sys.executable, "-c", code], timeout=30, capture_output=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main()
