#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A batch queue in small: an array of training jobs on hosts that are killed, drained, stopped, slow, full, taken or sick.

Each attempt is a preflight and a training that saves and resumes. What comes next its exit code decides, by what weft-doctor prints
for AWS Batch. Every job must end with the weights and the curve, to the bit, of a run that nobody disturbed. The same --seed plants
the same faults. Needs root, for hosts (network namespaces) and a disk that fills.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

import verdict
from faults import KINDS, Plan
from hosts import Pool
from jobs import Job
from policy import Policy
from variants import train_undisturbed

SKIPPED = 77
HOME = pathlib.Path(__file__).resolve().parents[3]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=HOME / "build/release", help="folder of the build")
    parser.add_argument("--jobs", type=int, default=200, help="in the array; 0: one for each kind of fault")
    parser.add_argument("--share", type=float, default=0.5, help="of the jobs that a fault befalls")
    parser.add_argument("--variants", type=int, default=16, help="different trainings among the jobs")
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--at-once", type=int, default=3, help="jobs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="begin no further job after that; the verdict is of those that ended")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for logs and checkpoints, which stay")
    return parser.parse_args()


def text_to_learn(folder):
    lines = (f"The square of {i} is {i * i}, and its cube is {i ** 3}.\n" for i in range(600))
    (folder / "text").write_text("".join(lines))
    return folder / "text"


def run_array(options, folder, jobs):
    """Adds the jobs to the list; returns those that were begun, when they have ended."""
    tools = options.build.resolve() / "bin"
    one_of_each = options.jobs == 0
    count = len(KINDS) if one_of_each else options.jobs
    rng = random.Random(options.seed)
    plan = Plan(count, 1.0 if one_of_each else options.share, rng)
    variants = train_undisturbed(tools, text_to_learn(folder), folder, min(options.variants, 4 if one_of_each else count))
    for i in range(count):
        jobs.append(Job(i, variants[i % len(variants)], folder / f"job.{i:03}", plan, options.seed))
    policy = Policy(tools / "weft-doctor")
    with Pool(options.hosts) as pool, concurrent.futures.ThreadPoolExecutor(options.at_once) as workers:
        running = [workers.submit(job.run, tools, pool, policy) for job in jobs]
        limit = options.minutes and 60 * options.minutes
        _, rest = concurrent.futures.wait(running, limit, concurrent.futures.FIRST_EXCEPTION)
        if rest:
            workers.shutdown(wait=True, cancel_futures=True)
    for job in (done for done in running if not done.cancelled()):
        job.result()  # raises what has gone wrong in the rig itself
    return [job for job in jobs if job.records]


def report(jobs, options, seconds):
    """The exit code."""
    print(verdict.table(jobs))
    print(f"queue: seed {options.seed}, {seconds:.0f} s: {verdict.summary(jobs)}")
    wrongs = list(verdict.wrongs(jobs))
    for wrong in wrongs:
        print(f"queue: WRONG: {wrong}")
    return 0 if verdict.is_enough(jobs) and not wrongs else 1


def main():
    options = parse()
    if os.geteuid() != 0:
        print("queue: skipped: network namespaces need root")
        return SKIPPED
    if not (options.build / "bin/weft-train").exists():
        print("queue: skipped: there is no weft-train in", options.build)
        return SKIPPED
    folder = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="weft-queue."))
    folder.mkdir(exist_ok=True)
    began, jobs = time.monotonic(), []
    try:
        begun = run_array(options, folder, jobs)
        return report(begun, options, time.monotonic() - began)
    finally:
        for job in jobs:
            job.storage.remove()
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
