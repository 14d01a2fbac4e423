# SPDX-License-Identifier: Apache-2.0
"""A job of the array, and an attempt at it: preflight, training with checkpoints, and what befalls it meanwhile."""

import dataclasses
import os
import random
import re
import time

from faults import KINDS, Fault
from hosts import Program
from storage import Storage

STEPS, SAVE_EVERY = 80, 10
LIMIT = 90  # seconds of an attempt, as a queue's job definition has one
GRACE = 12  # seconds from the end of the first process to that of the last

# Deadlines of a small job: ranks meet, and answer each other. A machine with other work needs some patience.
VARIABLES = {"WEFT_TIMEOUT_MS": "5000", "WEFT_INIT_TIMEOUT_MS": "12000", "WEFT_SECRET": "rig", "WEFT_TUNE_FILE": "off"}


@dataclasses.dataclass
class Record:
    """Of an attempt, for the table."""

    fault: str | None
    hosts: list
    stage: str = "preflight"  # in which it ended
    code: int | None = None
    struck: bool = False
    seconds: float = 0  # from the fault to the end
    had: int = 0  # steps of the checkpoint that it had to begin with
    resumed: int = 0  # steps of the one that it began with
    made: int = 0  # steps in all when it ended
    said: str = ""  # the end of its log
    is_late: bool = False  # it had to be ended
    culprit: str = ""  # what the others must name
    named: bool = True


class Attempt:
    def __init__(self, job, tools, hosts, fault_name, rng):
        self.job, self.tools, self.hosts, self.rng = job, tools, hosts, rng
        self.fault = KINDS[fault_name]() if fault_name else Fault()
        self.port = 29500 + job.number % 100
        self.log = job.folder / f"log.{len(job.records)}"
        self.program, self.struck_at = None, None
        self.record = Record(fault_name, [host.name for host in hosts])

    def run(self):
        """Returns the record, once all of its processes have ended."""
        self.record.had = self.job.storage.steps_to_resume()
        self.fault.before(self)
        try:
            self.record.code = self.preflight() or self.train()
        finally:
            self.fault.restore(self)
        if self.record.struck:
            self.fault.after(self)
        self.record.made = self.job.storage.steps_made()
        text = self.log.read_text(errors="replace")
        found = re.findall(r"^# resumed at step (\d+)", text, re.M)
        self.record.resumed = int(found[-1]) if found else 0
        self.record.said = text[-2000:]
        self.record.named = self.record.culprit in text
        return self.record

    def preflight(self):
        health = [self.tools / "weft-health", "--no-host", "--time", "3", "--join-timeout", "10"]
        before = time.monotonic()
        self.start(health)
        code = self.wait(lambda: None)
        if self.record.fault in ("sick host", "port taken"):
            self.record.struck, self.record.seconds = True, time.monotonic() - before
        return code

    def train(self):
        self.record.stage = "training"
        training = [self.tools / "weft-train", *self.job.flags]
        self.start(training + ["--batch", "1", "--global-batch", "4"])
        return self.wait(self.strike_in_time())

    def start(self, argv):
        """A rank on each host, by the variables of a launcher, or on one host the ranks that the program starts itself."""
        argv = [str(word) for word in argv]
        if len(self.hosts) == 1:
            commands = [(argv + ["--ranks", "2"], {})]
        else:
            root = f"{self.hosts[0].address}:{self.port}"
            commands = [(argv, {"WEFT_RANK": str(rank), "WEFT_SIZE": "2", "WEFT_ROOT": root}) for rank in range(2)]
        self.program = Program(self.hosts, commands, self.log, VARIABLES)

    def strike_in_time(self):
        """A function to be called all the time, which strikes once, when it is time."""
        soonest = self.record.had + 2
        when = self.rng.randrange(soonest, max(STEPS - 5, soonest + 1))
        storage = self.job.storage
        begun = max(storage.checkpoints()[0], default="")

        def is_time():
            if self.fault.moment == "step":
                return storage.steps_made() >= when
            whole, is_saving = storage.checkpoints()
            if self.fault.moment == "two saves":
                return len(whole) >= 2 and whole[0] > begun and storage.latest().name == whole[0]
            return is_saving and storage.steps_made() >= when // 2

        def strike():
            if self.record.fault and not self.record.struck and is_time():
                self.record.struck, self.struck_at = True, time.monotonic()
                self.fault.strike(self)

        return strike

    def wait(self, meanwhile):
        """The exit code of the job: the main host's, or another's if that one does not end."""
        limit, first = time.monotonic() + LIMIT, None
        while self.program.is_running():
            meanwhile()
            codes = [self.program.code(which) for which in range(len(self.hosts))]
            now = time.monotonic()
            if first is None and any(code is not None for code in codes):
                first = (now, [code for code in codes if code is not None][0])
            if now > limit or (first and now > first[0] + GRACE):
                self.record.is_late = first is None
                self.program.end()
            is_waiting = self.record.fault and not self.record.struck and self.record.stage == "training"
            time.sleep(0.002 if is_waiting else 0.05)
        main = self.program.code(0)
        if self.struck_at:
            self.record.seconds = (first[0] if first else time.monotonic()) - self.struck_at
        return first[1] if main == 137 and first and len(self.hosts) > 1 and first[1] != 0 else main

    @staticmethod
    def kill(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Job:
    def __init__(self, number, variant, folder, plan, seed):
        self.number, self.variant, self.folder, self.plan = number, variant, folder, plan
        self.seed = seed
        folder.mkdir()
        self.storage = Storage(folder / "shared")
        if plan.needs_small_disk(number):
            self.storage.put_on_small_disk()
        self.records, self.submissions, self.code = [], 1, None
        shared = self.storage.folder
        self.flags = [*variant.flags, "--steps", STEPS, "--save", shared, "--save-every", SAVE_EVERY, "--resume", shared]
        self.flags += ["--csv", shared / "curve", "--json", shared / "report"]

    def run(self, tools, pool, policy):
        """Until it has finished, or may not be tried again."""
        avoid, tries = set(), 0
        while True:
            record = self.try_once(tools, pool, avoid)
            self.records.append(record)
            tries += 1
            avoid.update(record.hosts if record.code != 0 else ())
            if record.code == 73:  # the one code by which an operator is called
                self.storage.make_room()
                self.submissions, tries = self.submissions + 1, 0
            elif record.code == 0 or tries == policy.attempts or not policy.retries(record.code):
                self.code = record.code
                return

    def try_once(self, tools, pool, avoid):
        """An attempt on hosts of the pool, which has them back whatever happens."""
        fault = self.plan.fault(self.number, len(self.records))
        rng = random.Random(f"{self.seed} {self.number} {len(self.records)}")
        hosts, bad = pool.take((KINDS[fault].hosts if fault else 0) or rng.choice((1, 2)), avoid, rng), ()
        try:
            record = Attempt(self, tools, hosts, fault, rng).run()
            bad = hosts if record.code == 69 else ()
            return record
        finally:
            pool.give_back(hosts, bad)
