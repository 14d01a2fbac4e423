# SPDX-License-Identifier: Apache-2.0
"""How well `weft-sim step` predicts the steps of `weft-train` on this machine.

Ranks that train without each other (--independent) say how long a step computes. Steps of the same
ranks together are measured right after them, and predicted from that and from the machine, which
weft-sim measures. A Markdown table goes to standard output, progress to standard error.
"""

import argparse
import collections
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

CORES = os.cpu_count() or 1
BATCH = 8  # sequences of a rank in a step
UPDATE_NS = 1.5  # of AdamW, for an element: assumed
WARM_UP = 2  # steps; the last one is left out, too, as no forward follows it

Job = collections.namedtuple("Job", "model ranks shard bucket")


def parse():
    parser = argparse.ArgumentParser(prog="./dev steps", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--models", nargs="+", default=["gpt", "bert"], help="of weft-train (default: gpt bert)")
    add("--ranks", nargs="+", type=int, default=[1, CORES, 2 * CORES],
        help="(default: one, one a core, two a core)")
    add("--shard", nargs="+", default=["none", "zero1", "zero3"], help="(default: none zero1 zero3)")
    add("--bucket-mb", nargs="+", type=float, default=[1, 4, 16, 64], help="(default: 1 4 16 64)")
    add("--steps", type=int, default=10, help="of a run (default: 10)")
    add("--rounds", type=int, default=3, help="of all runs, one after the other (default: 3)")
    add("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"),
        help="where weft-train and weft-sim are")
    options = parser.parse_args()
    if options.steps < WARM_UP + 2 or options.rounds < 1 or min(options.ranks) < 1:
        parser.error(f"--steps from {WARM_UP + 2} on, --rounds and --ranks from 1 on")
    return options


class Programs:
    def __init__(self, folder, steps, scratch):
        self.folder, self.steps = folder, steps
        self.data, self.csv = scratch / "text", scratch / "steps.csv"
        self.topology = scratch / "host.topo"
        self.data.write_text("".join(f"{i} is not {i + 1}, but {i * i}.\n" for i in range(4000)))
        self.topology.write_text("weft-topology 1\nname host\nnodes 1 ranks 1024\nmemory gbit 400 us 0.5\n")

    def train(self, model, ranks, *more):
        """Milliseconds of a step."""
        subprocess.run(
            [self.folder / "weft-train", "--model", model, "--ranks", str(ranks), "--threads", "1",
             "--steps", str(self.steps), "--batch", str(BATCH), "--quiet", "--csv", self.csv,
             "--data", self.data, *more], check=True)
        with open(self.csv, encoding="utf-8") as file:
            return statistics.median(float(row["step_ms"]) for row in list(csv.DictReader(file))[WARM_UP:-1])

    def simulate(self, model, compute_ms, *more):
        done = subprocess.run(
            [self.folder / "weft-sim", "step", "--topology", self.topology, "--model", model,
             "--compute-ms", str(compute_ms), "--json", "-", *more],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return json.loads(done.stdout)

    def predict(self, job, alone_ms):
        """By the step of ranks without each other, each of which has its part of a core."""
        elements = self.simulate(job.model, 1, "--ranks-per-node", "1")["parameters_elements"]
        compute_ms = alone_ms / max(1, job.ranks / CORES) - UPDATE_NS * elements / 1e6
        step = self.simulate(
            job.model, compute_ms, "--ranks-per-node", str(job.ranks), "--shard", job.shard,
            "--bucket-mb", str(job.bucket), "--update-ns", str(UPDATE_NS), "--batch", str(BATCH),
            "--host-compute", "--cores", str(min(job.ranks, CORES)))
        return step["rows"][0]["step_ns"] / 1e6


def measure(programs, options):
    """By job, of each round: alone, together."""
    times = collections.defaultdict(list)
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
        for model in options.models:
            for ranks in options.ranks:
                for shard in options.shard:
                    alone = programs.train(model, ranks, "--independent")
                    for bucket in options.bucket_mb:
                        together = programs.train(model, ranks, "--shard", shard, "--bucket-mb", str(bucket))
                        times[Job(model, ranks, shard, bucket)].append((alone, together))
    return {job: [statistics.median(column) for column in zip(*rounds)] for job, rounds in times.items()}


def report(errors, name, belongs):
    those = sorted(abs(error) for job, error in errors.items() if belongs(job))
    most = those[min(len(those) - 1, int(0.9 * len(those)))]
    print(f"| {name} | {len(those)} | {statistics.median(those):.1f} | {most:.1f} |")


def main():
    options = parse()
    with tempfile.TemporaryDirectory() as scratch:
        programs = Programs(options.bin, options.steps, pathlib.Path(scratch))
        times = measure(programs, options)
        errors = {}
        print("| model | ranks | shard | bucket, MB | alone, ms | together, ms | predicted, ms | error, % |\n"
              "|---|---:|---|---:|---:|---:|---:|---:|")
        for job, (alone, together) in times.items():
            predicted = programs.predict(job, alone)
            errors[job] = 100 * (predicted / together - 1)
            print(f"| {job.model} | {job.ranks} | {job.shard} | {job.bucket:g} | {alone:.1f} | {together:.1f} | "
                  f"{predicted:.1f} | {errors[job]:+.1f} |")
    print("\n| | points | error: median % | p90 % |\n|---|---:|---:|---:|")
    for ranks in options.ranks:
        for shard in options.shard:
            report(errors, f"{ranks} ranks, {shard}", lambda job: (job.ranks, job.shard) == (ranks, shard))
    report(errors, "all", lambda job: True)


if __name__ == "__main__":
    main()
