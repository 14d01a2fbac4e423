# SPDX-License-Identifier: Apache-2.0
"""The sharded optimizer over numpy's arrays beside the same steps in numpy, and checkpoints."""

import pathlib
import tempfile
import unittest

import numpy
import weft

SHAPES = {"weight": (30, 41), "norm": (7,), "output": (41, 3)}
DEGREES = ("data", "zero1", "zero2", "zero3", (2, 2, 2), (1, 2, 4), (1, 1, 2))
STEPS = 4


def first(seed=1):
    random = numpy.random.default_rng(seed)
    return {name: random.normal(size=shape).astype("f4") for name, shape in SHAPES.items()}


def gradients(step, rank):
    return first(1000 * step + rank + 7)


def adamw(ranks, steps=STEPS, lr=0.01, decay=0.1, betas=(0.9, 0.999)):
    """In double precision, by the paper."""
    weights = {name: array.astype("f8") for name, array in first().items()}
    moments = {name: (0.0, 0.0) for name in weights}
    for step in range(1, steps + 1):
        for name in weights:
            g = sum(gradients(step, rank)[name].astype("f8") for rank in range(ranks)) / ranks
            m, v = moments[name]
            m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
            moments[name] = m, v
            if name != "norm":
                weights[name] *= 1 - lr * decay
            root = numpy.sqrt(v / (1 - betas[1] ** step)) + 1e-8
            weights[name] -= lr * m / (1 - betas[0] ** step) / root
    return weights


def made(comm, degrees="zero1", **how):
    start = first() if comm.rank == 0 else first(99)  # rank 0's are everybody's
    how = {"lr": 0.01, "weight_decay": 0.1, "bucket_elements": 500, **how}
    return weft.ShardedOptimizer(start, comm=comm, no_decay=("norm",), degrees=degrees, **how)


def train(comm, optimizer, begin=1, end=STEPS):
    for step in range(begin, end + 1):
        optimizer.step(gradients(step, comm.rank))
    return {name: array.copy() for name, array in optimizer.weights.items()}


class ArrayOptimizer(unittest.TestCase):
    def close(self, got, wanted, tolerance=1e-5):
        for name in SHAPES:
            numpy.testing.assert_allclose(got[name], wanted[name], atol=tolerance, rtol=0)

    def test_all_degrees(self):
        for ranks in (1, 2, 4):
            wanted = adamw(ranks)

            def work(comm):
                return [train(comm, made(comm, each)) for each in DEGREES if fits(each, comm.size)]

            for rank in weft.run(work, ranks, timeout=60):
                for got in rank:
                    self.close(got, wanted)

    def test_gradients_that_come_in_parts(self):
        def work(comm):
            optimizer = made(comm)
            for last in (False, True):
                with optimizer.backward(last):
                    for name, gradient in gradients(1, comm.rank).items():
                        optimizer.gradients[name] += gradient / 2
                        optimizer.ready(name)
            stats = optimizer.step()
            first_weights = {name: array.copy() for name, array in optimizer.weights.items()}
            assert not stats.skipped and stats.bad_param is None and stats.gradient_norm > 0
            with self.assertRaisesRegex(weft.InvalidUsage, "call step.. first"):
                for _ in range(2):
                    with optimizer.backward():
                        pass
            with self.assertRaisesRegex(weft.InvalidUsage, "no backward pass is under way"):
                optimizer.ready("norm")
            return first_weights

        for got in weft.run(work, 2, timeout=60):
            self.close(got, adamw(2, steps=1))

    def test_what_is_refused(self):
        comm = weft.Communicator.all(1)[0]
        self.addCleanup(comm.close)

        def refused(pattern, params={"w": numpy.ones(4, "f4")}, *optimizer, **how):
            with self.assertRaisesRegex(weft.InvalidArgument, pattern):
                weft.ShardedOptimizer(params, *optimizer, **{"comm": comm, **how})

        refused("params is None; fix: pass model.parameters", None)
        refused("comm is 3; fix: pass a weft.Communicator", comm=3)
        for degrees in 3, None, (1, 1), {}:
            refused("degrees .* is unknown; fix: one of data", degrees=degrees)
        refused("degrees is 'a'; fix", degrees=("a", 1, 1))
        for betas in 3, (0.9,), ("a", 0.9):
            refused("betas is .*fix: pass two numbers", betas=betas)
        refused("eps is 'x'; fix: pass a number", eps="x")
        refused("bucket_elements is 1180591620717411303424, which does not fit", bucket_elements=2**70)
        refused("'w' is of float32, and dtype is 'bfloat16'; fix", dtype="bfloat16")
        refused("no_decay has 'bias'; fix: a tuple of names of parameters: w", no_decay=("bias",))
        refused("no_decay has 'w'; fix", no_decay="w")
        refused(r"parameter 'w' has the shape \(0,\); fix", {"w": numpy.ones(0, "f4")})
        with self.assertRaisesRegex(weft.InvalidUsage, "no parameters; fix"):
            weft.ShardedOptimizer({}, comm=comm)
        optimizer = weft.ShardedOptimizer({"w": numpy.ones(4, "f4")}, comm=comm, lr="fast")
        with self.assertRaisesRegex(weft.InvalidArgument, "no parameter is 'v'; fix: one of w"):
            optimizer.ready("v")
        with self.assertRaisesRegex(weft.InvalidArgument, "lr is 'fast'; fix"):
            optimizer.step({"w": numpy.ones(4)})

    def test_a_scalar_is_a_parameter(self):
        with weft.Communicator.all(1)[0] as comm:
            scale = numpy.array(1, "f4")
            optimizer = weft.ShardedOptimizer({"scale": scale}, "sgd", comm=comm, lr=0.5)
            optimizer.step({"scale": 1.0})
            self.assertEqual(optimizer.weights["scale"], 0.5)

    def test_long_meta_data_come_back_whole(self):
        with weft.Communicator.all(1)[0] as comm, tempfile.TemporaryDirectory() as folder:
            optimizer, meta = weft.ShardedOptimizer({"w": numpy.ones(4, "f4")}, comm=comm), "x" * (3 << 20)
            optimizer.shard.save(folder, meta)
            self.assertEqual(optimizer.shard.load(folder), meta)

    def test_a_gradient_that_is_not_finite(self):
        def work(comm):
            optimizer = made(comm)
            bad = gradients(1, comm.rank)
            bad["output"][3, 1] = numpy.nan if comm.rank else 1
            stats = optimizer.step(bad)
            return (stats.skipped, stats.bad_param, stats.bad_rank), optimizer.weights["norm"]

        for told, weights in weft.run(work, 2, timeout=60):
            self.assertEqual(told, (True, "output", 1))
            self.assertTrue((weights == first()["norm"]).all())

    def test_a_checkpoint_goes_on_with_other_ranks(self):
        with tempfile.TemporaryDirectory() as folder:

            def begin(comm):
                optimizer = made(comm, "zero2")
                train(comm, optimizer, 1, 2)
                optimizer.shard.save(folder, {"epoch": 3})
                optimizer.shard.export(pathlib.Path(folder) / "model.safetensors", True)
                return optimizer.shard.info().steps

            def resume(comm):
                optimizer = made(comm, "zero1")
                assert optimizer.shard.load(folder) == {"epoch": 3}
                for step in (3, 4):  # as if there were still two ranks
                    optimizer.args.divisor = 2 * comm.size
                    both = [gradients(step, rank) for rank in (0, 1)]
                    optimizer.step({name: both[0][name] + both[1][name] for name in SHAPES})
                return optimizer.weights

            self.assertEqual(weft.run(begin, 2, timeout=60), [2, 2])
            wanted = adamw(2)
            for ranks in (1, 3):
                for got in weft.run(resume, ranks, timeout=60):
                    self.close(got, wanted)
            self.assertGreater((pathlib.Path(folder) / "model.safetensors").stat().st_size, 5000)

    def test_weights_alone_of_another_optimizer(self):
        with tempfile.TemporaryDirectory() as folder:

            def work(comm):
                lans = made(comm, optimizer="lans", eps=1e-6)
                weights = train(comm, lans)
                lans.shard.save(folder)
                sgd = made(comm, optimizer="sgd")
                sgd.shard.load(folder, weights_alone=True)
                same = all((sgd.weights[name] == weights[name]).all() for name in SHAPES)
                return same, sgd.shard.info().steps

            self.assertEqual(weft.run(work, 2, timeout=60), [(True, 0)] * 2)

    def test_sixteen_bits(self):
        def work(comm):
            start = {"w": numpy.full(1000, 0x3F80, "uint16")}  # ones
            optimizer = weft.ShardedOptimizer(start, "sgd", comm=comm, lr=0.5, dtype="bfloat16")
            optimizer.step({"w": numpy.uint16(0x3F80)})
            return int(optimizer.weights["w"][5])

        self.assertEqual(weft.run(work, 2, timeout=60), [0x3F00] * 2)  # 0.5

    def test_wrong_uses(self):
        comm = weft.Communicator.all(1)[0]
        ones = numpy.ones(3, "f4")

        def refused(pattern, params, *more, kind=weft.InvalidArgument, **how):
            with self.assertRaisesRegex(kind, pattern):
                weft.ShardedOptimizer(params, *more, comm=comm, **how)

        refused("types float32, float64; fix: pass", {"a": ones, "b": numpy.ones(3)})
        refused("degrees 'zero9' is unknown; fix: one of data", {"a": ones}, degrees="zero9")
        refused("optimizer 'adam' is unknown", {"a": ones}, "adam")
        refused("has no option rate; it has", {"a": ones}, kind=TypeError, rate=1)
        refused("no parameters", {}, kind=weft.InvalidUsage, dtype="float32")
        refused("divide", {"a": ones}, degrees=(1, 1, 3))

    def test_arrays_outlive_the_optimizer(self):
        comm = weft.Communicator.all(1)[0]
        weights = weft.ShardedOptimizer({"a": numpy.ones(3, "f4")}, comm=comm).weights["a"]
        self.assertEqual(weights.tolist(), [1, 1, 1])


def fits(degrees, ranks):
    return isinstance(degrees, str) or all(ranks % each == 0 for each in degrees)


if __name__ == "__main__":
    unittest.main()
