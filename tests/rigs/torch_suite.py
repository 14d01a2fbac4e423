# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own DistributedTest, which its package brings, on weft. usage: torch_suite.py [--as-it-is] [--like NAME] [TEST...]

Its 270 tests ask for back ends by name: those that Gloo or MPI alone may run are gates that have nothing to do with what a
back end can do. They are lifted, in the text of the module and nowhere else; --as-it-is leaves them, --like gloo
runs what that back end runs. WORLD_SIZE (3) ranks; TORCH_SUITE_PART=1/4 is the second of four parts of the tests, to run side by side. Prints each test that ran, and of those that did not how many for
which reason; the exit code is 1 if one failed that is not in EXPECTED.
"""

import collections
import dataclasses
import os
import re
import sys
import time
import types
import unittest

os.environ.setdefault("BACKEND", "weft")
os.environ.setdefault("WORLD_SIZE", "3")
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("INIT_METHOD", "file://")  # what tests ask for as they are read; setUp() has the true one
BACKEND = os.environ["BACKEND"]

try:
    import expecttest  # noqa: F401
except ImportError:  # not in Debian; torch's tests derive from its class, and DistributedTest uses nothing of it
    sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase, ACCEPT=False)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.testing._internal import common_distributed  # noqa: E402

import weft  # noqa: E402, F401

MODULE = "torch.testing._internal.distributed.distributed_test"

# What fails by intention, with the reason.
EXPECTED = {
    "test_sparse_all_reduce_sum": "sparse tensors are refused with a sentence",
    "test_ddp_logging_data_cpu": "torch 2 calls every back end but its own \"custom\" in the log of DDP",
}

LIFTED = {
    'BACKEND != "mpi" and BACKEND != "nccl" and BACKEND != "gloo"': "False",
    'BACKEND != "gloo" and BACKEND != "nccl"': "False",
    'BACKEND != "nccl" and BACKEND != "gloo"': "False",
    'BACKEND == "mpi" or BACKEND == "gloo"': 'BACKEND != "nccl"',
    'BACKEND != "gloo"': "False",
    'BACKEND != "mpi"': "False",
    "    dist.Backend.UCC,\n]": f'    dist.Backend.UCC,\n    "{BACKEND}",\n]',  # the profiler is asked, too
}


def lift_gates(text):
    for gate, free in LIFTED.items():
        if gate not in text:
            sys.exit(f"torch_suite.py: {MODULE} has no '{gate}'; fix: write the gates of this version of torch into LIFTED")
        text = text.replace(gate, free)
    return re.sub(r'@require_backend(_is_available)?\(\{"gloo"\}\)', r"@require_backend\1({BACKEND})", text)


def monitored_barrier(group=dist.GroupMember.WORLD, timeout=None, wait_all_ranks=False):
    """torch's, less its question for the name of the back end."""
    if dist.distributed_c10d._rank_not_in_group(group):
        return None
    chosen = group or dist.distributed_c10d._get_default_group()
    return chosen.monitored_barrier(timeout or dist.default_pg_timeout, wait_all_ranks=wait_all_ranks)


def load_module():
    """torch's tests, with the gates lifted unless TORCH_SUITE_AS_IT_IS is set."""
    import importlib.util

    spec = importlib.util.find_spec(MODULE)
    module = types.ModuleType(MODULE)
    module.__file__, module.__spec__ = spec.origin, spec
    sys.modules[MODULE] = module
    with open(spec.origin) as file:
        text = file.read()
    if not os.environ.get("TORCH_SUITE_AS_IT_IS"):
        text = lift_gates(text)
        dist.monitored_barrier = monitored_barrier
    exec(compile(text, spec.origin, "exec"), module.__dict__)
    return module


def mend_dataclasses():
    """torch 1.13's sharded tensors, which DDP imports in these tests, have a default that Python 3.11 refuses: with
    any back end."""
    get_field = dataclasses._get_field

    def lenient(cls, name, *others):
        given = getattr(cls, name, None)
        default = type(given.default if isinstance(given, dataclasses.Field) else given)
        if dataclasses.is_dataclass(default) and default.__hash__ is None:
            default.__hash__ = object.__hash__
        return get_field(cls, name, *others)

    dataclasses._get_field = lenient
    import torch.distributed._shard.sharded_tensor  # noqa: F401

    dataclasses._get_field = get_field


mend_dataclasses()
if BACKEND == "weft":
    for feature in ("ddp", "subgroup", "gpu", "cuda", "plugin"):
        common_distributed.DistTestCases.backend_feature[feature].add("weft")
tests = load_module()


class TorchSuite(tests.TestDistBackend, tests.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        tests.INIT_METHOD = os.environ["INIT_METHOD"]
        self._start_processes(torch.multiprocessing.get_context("fork").Process)  # which have imported all this already; spawned ones take ten times as long


class Table(unittest.TextTestResult):
    """Of all tests, how each went."""

    def __init__(self, *args):
        super().__init__(*args)
        self.passed, self.reasons, self.begin = [], {}, 0

    def startTest(self, test):
        self.begin = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test):
        self.passed.append(name_of(test))
        self.say("passed", test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.fail(test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self.fail(test, error)

    def addSkip(self, test, reason):
        self.skipped.append((name_of(test), reason))

    def fail(self, test, error):
        self.reasons[name_of(test)] = last_error(str(error[1]))
        self.say("FAILED", test)

    def say(self, how, test):
        print(f"{how} {name_of(test)} {time.monotonic() - self.begin:.1f} s", flush=True)


def name_of(test):
    return test.id().split(".")[-1]


def last_error(text):
    """The line that names the exception, of all that a child has printed."""
    lines = [line for line in text.splitlines() if re.match(r"\w*(Error|Exception)\b", line)]
    return (lines or text.splitlines() or ["no text"])[-1][:160]


def report(result, ran):
    print(f"\n{len(result.passed)} of {ran} tests passed, with {os.environ['WORLD_SIZE']} ranks on {BACKEND}")
    unexpected = 0
    for name, reason in sorted(result.reasons.items()):
        unexpected += name not in EXPECTED
        print(f"failed: {name}: {reason}" + (f" (by intention: {EXPECTED[name]})" if name in EXPECTED else ""))
    for reason, count in collections.Counter(reason for _, reason in result.skipped).most_common():
        print(f"not for this: {count}: {reason}")
    return unexpected


def main(arguments):
    if "--as-it-is" in arguments:
        os.environ["TORCH_SUITE_AS_IT_IS"] = "1"
        os.execv(sys.executable, [sys.executable, *[a for a in sys.argv if a != "--as-it-is"]])
    if arguments[:1] == ["--like"]:
        os.environ.update(BACKEND=arguments[1], TORCH_SUITE_AS_IT_IS="1")
        os.execv(sys.executable, [sys.executable, sys.argv[0], *arguments[2:]])
    part, parts = map(int, os.environ.get("TORCH_SUITE_PART", "0/1").split("/"))
    names = arguments or unittest.defaultTestLoader.getTestCaseNames(TorchSuite)[part::parts]
    suite = unittest.TestSuite(map(TorchSuite, names))
    with open(os.devnull, "w") as nowhere:
        result = unittest.TextTestRunner(stream=nowhere, resultclass=Table).run(suite)
    return 1 if report(result, len(result.passed) + len(result.reasons)) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
