# SPDX-License-Identifier: Apache-2.0
"""Every collective gives what numpy computes, on 1 to 4 ranks, for every type it has."""

import array
import unittest

import numpy
import weft

TYPES = "int8 uint8 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()


def inputs(size, shape, dtype):
    """What each rank brings: small numbers, so that every type adds them exactly."""
    cells = int(numpy.prod(shape, dtype=int))
    each = [(numpy.arange(cells) + 3 * rank) % 7 for rank in range(size)]
    return [one.reshape(shape).astype(dtype) for one in each]


def same(got, wanted, what):
    numpy.testing.assert_array_equal(got, wanted, what)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, what


def reductions(comm):
    for dtype in TYPES:
        all_ = inputs(comm.size, (4 * comm.size, 3), dtype)
        mine = all_[comm.rank]
        total = numpy.sum(all_, axis=0, dtype=dtype)
        same(comm.all_reduce(mine), total, dtype)
        same(comm.reduce_scatter(mine), numpy.split(total, comm.size)[comm.rank], dtype)
        rooted = comm.reduce(mine, root=comm.size - 1)
        assert (rooted is None) == (comm.rank != comm.size - 1)
        if rooted is not None:
            same(rooted, total, dtype)


def operations(comm):
    all_ = inputs(comm.size, (5,), "float64")
    wanted = {"prod": numpy.prod, "max": numpy.max, "min": numpy.min, "avg": numpy.mean}
    for op, function in wanted.items():
        got = comm.all_reduce(all_[comm.rank], op=op)
        numpy.testing.assert_allclose(got, function(all_, axis=0), rtol=1e-15)
        same(comm.all_reduce(all_[comm.rank], op=weft.Op[op.upper()]), got, op)
    for dtype in (*weft.DataType,):
        with comm.pre_mul_sum(2, dtype) as twice:
            data = numpy.ones(4, "uint16" if dtype.name == "BFLOAT16" else dtype.name.lower())
            data[:] = 0x3F80 if dtype.name == "BFLOAT16" else 1
            got = comm.all_reduce(data, op=twice, dtype=dtype)
        wanted = {1: 0x4000, 2: 0x4080, 3: 0x40C0, 4: 0x4100}[comm.size]
        assert (got == (wanted if dtype.name == "BFLOAT16" else 2 * comm.size)).all(), dtype
    flags = numpy.array([comm.rank == 0, True, False])
    for op in ("band", "bor", "bxor"):
        function = getattr(numpy, f"bitwise_{op[1:]}")
        for dtype in ("uint8", "int32", "uint64", "bool"):
            all_ = [one.astype(dtype) for one in inputs(comm.size, (9,), "int64")]
            same(comm.all_reduce(all_[comm.rank], op=op), function.reduce(all_, axis=0), op)
    assert comm.all_reduce(flags, op="max").tolist() == [True, True, False]
    assert comm.all_reduce(flags, op="min").tolist() == [comm.size == 1, True, False]


def moves(comm):
    record = numpy.dtype([("KEY OF IT", "<i2"), ("value", ">f8")])
    for dtype in (*TYPES, "bool", "int16", "M8[s]", record):
        all_ = [numpy.zeros((comm.size, 2), dtype) for _ in range(comm.size)]
        if dtype is not record:
            all_ = inputs(comm.size, (comm.size, 2), "int8" if dtype == "bool" else "int64")
            all_ = [one.astype(dtype) for one in all_]
        else:
            for rank, one in enumerate(all_):
                one["KEY OF IT"], one["value"] = rank, rank + 0.5
        check_moves(comm, all_, str(dtype))


def check_moves(comm, all_, what):
    mine, kind = all_[comm.rank], all_[0].dtype  # concatenate() would make it native
    together = numpy.concatenate(all_).astype(kind)
    column = numpy.concatenate([one[comm.rank : comm.rank + 1] for one in all_]).astype(kind)
    same(comm.all_gather(mine), together, what)
    same(comm.all_to_all(mine), column, what)
    gathered = comm.gather(mine)
    assert (gathered is None) == (comm.rank != 0)
    if gathered is not None:
        same(gathered, together, what)
    out = numpy.empty((1, 2), mine.dtype)
    same(comm.scatter(all_[0] if comm.rank == 0 else None, out=out), all_[0][comm.rank :][:1], what)
    same(comm.broadcast(mine.copy(), root=comm.size - 1), all_[-1], what)
    comm.barrier()


def uneven(comm):
    counts = [2 * rank for rank in range(comm.size)]
    displs = [rank * rank for rank in range(comm.size)]
    mine = numpy.full(counts[comm.rank], comm.rank, "complex64")
    together = numpy.concatenate([numpy.full(n, r, "complex64") for r, n in enumerate(counts)])
    same(comm.all_gather_v(mine, counts), together, "packed")
    spread = comm.all_gather_v(mine, counts, displs, numpy.full(20, 9, "complex64"))
    for rank, (count, at) in enumerate(zip(counts, displs)):
        same(spread[at : at + count], numpy.full(count, rank, "complex64"), "spread")
    got = comm.reduce_scatter_v(together, counts)
    same(got, mine * comm.size, "reduced")
    got = comm.reduce_scatter_v(numpy.arange(20, dtype="int32"), counts, displs, op="max")
    same(
        got, numpy.arange(20, dtype="int32")[displs[comm.rank] :][: counts[comm.rank]], "at displs"
    )


def uneven_by_pairs(comm):
    rank, size = comm.rank, comm.size
    counts, root = [2 * r for r in range(size)], size - 1
    together = numpy.concatenate([numpy.full(n, r, "complex64") for r, n in enumerate(counts)])
    mine = numpy.full(counts[rank], rank, "complex64")
    got = comm.gather_v(mine, counts if rank == root else None, root=root)
    assert (got is None) == (rank != root)
    if got is not None:
        same(got, together, "gathered")
    out = numpy.empty(counts[rank], "complex64")
    at_root = (together, counts, [r * (r - 1) for r in range(size)]) if rank == root else (None,)
    same(comm.scatter_v(*at_root, out=out, root=root), mine, "scattered")
    send = numpy.concatenate([numpy.full(rank + d, 10 * rank + d, "int16") for d in range(size)])
    takes = [s + rank for s in range(size)]
    wanted = numpy.concatenate([numpy.full(s + rank, 10 * s + rank, "int16") for s in range(size)])
    same(comm.all_to_all_v(send, [rank + d for d in range(size)], takes), wanted, "exchanged")
    places = [100 * s for s in range(size)]
    to = numpy.zeros(100 * size, "int16")
    comm.all_to_all_v(send, [rank + d for d in range(size)], takes, None, places, to)
    same(numpy.concatenate([to[at : at + n] for at, n in zip(places, takes)]), wanted, "spread")


def in_place(comm):
    data = numpy.full(6, comm.rank + 1.0)
    assert comm.all_reduce(data, out=data) is data
    assert (data == comm.size * (comm.size + 1) / 2).all()
    whole = numpy.zeros((comm.size, 4))
    whole[comm.rank] = comm.rank
    comm.all_gather(whole[comm.rank], out=whole)
    same(whole, numpy.repeat(numpy.arange(comm.size, dtype=float), 4).reshape(-1, 4), "gathered")


def buffers(comm):
    mine = array.array("i", [comm.rank, 1])
    got = comm.all_reduce(mine)
    assert isinstance(got, memoryview) and got.tolist() == [sum(range(comm.size)), comm.size]
    assert comm.all_gather(b"ab").tobytes() == b"ab" * comm.size
    halves = bytearray(numpy.ones(3, "float16").tobytes())
    total = comm.all_reduce(halves, dtype="float16")
    assert (numpy.frombuffer(total, "float16") == comm.size).all()
    assert comm.all_reduce(numpy.float32(2)).shape == ()
    assert comm.all_gather(numpy.float32(2)).shape == (comm.size,)
    assert comm.all_reduce(numpy.empty((0, 3))).shape == (0, 3)


def ring(comm):
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    mine, theirs = numpy.full(1000, comm.rank), numpy.empty(1000, int)
    with weft.group():
        comm.send(mine, after)
        comm.recv(theirs, before)
    assert (theirs == before).all()


def families(comm):
    copy = comm.dup(name="copy")
    assert (copy.rank, copy.size) == (comm.rank, comm.size)
    odd = comm.split(comm.rank % 2, key=-comm.rank)
    members = range(comm.size)[comm.rank % 2 :: 2]
    assert odd.size == len(members) and odd.rank == members[::-1].index(comm.rank)
    assert comm.split(None if comm.rank else 0) is None or comm.rank == 0
    assert copy.all_reduce(numpy.ones(1))[0] == comm.size
    assert (comm.local_rank, comm.local_size) == (comm.rank, comm.size)


def tells(comm):
    assert "all_reduce" in comm.explain("all_reduce", 1024) or comm.size == 1
    assert comm.explain(None)
    assert comm.edges() or comm.size == 1
    assert comm.mem_stats().other > 0 and comm.error() is None
    comm.register(numpy.ones(100))()
    options = dict(timeout_ms=5000, algorithm="mesh", reproducible=True, label="mine")
    assert comm.all_reduce(numpy.ones(1), **options)[0] == comm.size


class Collectives(unittest.TestCase):
    def everywhere(self, *works):
        def work(comm):
            for each in works:
                each(comm)

        for ranks in (1, 2, 3, 4):
            with self.subTest(ranks=ranks):
                weft.run(work, ranks=ranks, timeout=60)

    def test_reductions(self):
        self.everywhere(reductions, operations, in_place)

    def test_moves(self):
        self.everywhere(moves, uneven, uneven_by_pairs, buffers, ring)

    def test_communicators(self):
        self.everywhere(families, tells)


if __name__ == "__main__":
    unittest.main()
