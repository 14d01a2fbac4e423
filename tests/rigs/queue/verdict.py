# SPDX-License-Identifier: Apache-2.0
"""What came of the array: the table by kind of fault, and what must not be."""

import statistics

from faults import KINDS, Fault

ENOUGH = 0.99  # of the jobs finish


def struck(jobs, kind=None):
    """The attempts that a fault has struck, each with the steps that had to be made again; None where it did not end it."""
    for job in jobs:
        for at, record in enumerate(job.records):
            if record.struck and kind in (None, record.fault):
                yield record, steps_again(record, job.records[at + 1 :])


def steps_again(record, later):
    """Beyond where the next attempt that trained has begun."""
    trained = [one for one in later if one.stage == "training"]
    if record.code == 0 or not trained:
        return None
    return record.made - trained[0].resumed if record.stage == "training" else 0


def wrongs(jobs):
    """A sentence for each thing that must not be."""
    for job in jobs:
        who = f"job {job.number} ({job.variant.name})"
        if job.code != 0:
            yield f"{who} did not finish: exit code {job.code}\n{job.records[-1].said}"
        elif job.storage.weights() != job.variant.weights:
            yield f"{who} has other weights than the undisturbed run"
        elif job.storage.curve() != job.variant.curve:
            yield f"{who} has another curve than the undisturbed run"
        for number, record in enumerate(job.records):
            yield from (f"{who}, attempt {number}, {record.fault}: {wrong}" for wrong in wrongs_of(record))


def wrongs_of(record):
    codes = KINDS[record.fault].codes if record.fault and record.struck else Fault.codes
    if record.code not in codes and record.code != 0:
        yield f"exit code {record.code} of {record.stage}, and not one of {sorted(codes)}\n{record.said}"
    if not record.named:
        yield f"nobody named the {record.culprit}\n{record.said}"
    if record.is_late:
        yield f"did not end within its limit\n{record.said}"
    if record.stage == "training" and record.resumed != record.had and "# resumed" in record.said:
        yield f"went on at step {record.resumed}, and there was a checkpoint of {record.had}"


def row(kind, jobs):
    hit = list(struck(jobs, kind))
    again = [steps for _, steps in hit if steps is not None]
    seconds = [record.seconds for record, steps in hit if steps is not None]
    codes = sorted({record.code for record, _ in hit})
    cells = [kind, len(hit), ", ".join(map(str, codes))]
    if not again:
        return [*cells, "0", "0", "-", "-"]
    cost = [f"{statistics.mean(again):.1f}", max(again)]
    return [*cells, *cost, f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}"]


def table(jobs):
    head = ["fault", "struck", "exit codes", "steps made again, mean", "most", "s to the end, median", "most"]
    lines = [head, ["---", "---:", "---", "---:", "---:", "---:", "---:"], *(row(kind, jobs) for kind in KINDS)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def mean_cost(jobs):
    """In steps, of all faults that ended an attempt."""
    again = [steps for _, steps in struck(jobs) if steps is not None]
    return statistics.mean(again) if again else 0.0


def summary(jobs):
    attempts = sum(len(job.records) for job in jobs)
    in_time = sum(record.struck for job in jobs for record in job.records)
    planned = sum(record.fault is not None for job in jobs for record in job.records)
    finished = sum(job.code == 0 for job in jobs)
    called = sum(job.submissions - 1 for job in jobs)
    unplanned = sum(a.code != 0 and not (a.fault and a.struck) for job in jobs for a in job.records)
    return (f"{finished} of {len(jobs)} jobs finished ({100 * finished / len(jobs):.1f} %), in {attempts} attempts; {in_time} of "
            f"{planned} faults struck in time; {unplanned} attempts failed without one; an operator made room {called} times; a "
            f"fault costs {mean_cost(jobs):.1f} steps of {len(jobs[0].variant.curve)} in the mean")


def is_enough(jobs):
    return sum(job.code == 0 for job in jobs) >= ENOUGH * len(jobs)
