# SPDX-License-Identifier: Apache-2.0
"""What befalls a job: each kind of fault, the codes that an attempt may end with then, and what the queue must know of it.

A fault may be planted before an attempt, while it trains, or after its end, by the attempt's own random numbers.
"""

import signal
import subprocess
import time


class Fault:
    """Nothing happens."""

    codes = {0}
    hosts = 0  # that the job must have; 0 = any number
    moment = "step"  # that it waits for, or "save"

    def before(self, attempt):
        pass

    def strike(self, attempt):
        pass

    def restore(self, attempt):
        """What before() or strike() has changed of the hosts."""

    def after(self, attempt):
        """Once all processes have ended, if it has struck."""


class Killed(Fault):
    """The kernel or somebody kills one rank."""

    codes = {75, 137}

    def strike(self, attempt):
        pids = [pid for host in range(len(attempt.hosts)) for pid in attempt.program.ranks_on(host)]
        victim = attempt.rng.choice(pids)
        attempt.kill(victim, signal.SIGKILL)
        attempt.record.culprit = f"pid {victim}"


class Drained(Fault):
    """A host is wanted back: SIGTERM, and time to save."""

    codes = {75}

    def strike(self, attempt):
        which = attempt.rng.randrange(len(attempt.hosts))
        attempt.kill(attempt.program.processes[which].pid, signal.SIGTERM)


class Stopped(Fault):
    """A host goes on breathing and does nothing more."""

    codes = {75}
    hosts = 2

    def strike(self, attempt):
        which = attempt.rng.randrange(2)
        attempt.program.signal_host(which, signal.SIGSTOP)
        attempt.record.culprit = f"host {attempt.hosts[which].name}"


class Slow(Fault):
    """A host gets a third of its time, for a second or so: no fault, only a longer step."""

    def strike(self, attempt):
        which = attempt.rng.randrange(len(attempt.hosts))
        for _ in range(6):
            attempt.program.signal_host(which, signal.SIGSTOP)
            time.sleep(0.1)
            attempt.program.signal_host(which, signal.SIGCONT)
            time.sleep(0.05)


class CablePulled(Fault):
    """A host that nobody reaches any more."""

    codes = {75}
    hosts = 2

    def strike(self, attempt):
        attempt.hosts[attempt.rng.randrange(2)].cable(False)

    def restore(self, attempt):
        for host in attempt.hosts:
            host.cable(True)


class PowerOffWhileSaving(Fault):
    """All ranks die with a checkpoint half written."""

    codes = {137}
    moment = "save"

    def strike(self, attempt):
        for which in range(len(attempt.hosts)):
            attempt.program.signal_host(which, signal.SIGKILL)


class DiskFull(Fault):
    """Somebody fills the disk of the checkpoints, a small one that the job has from the beginning. The job ends for good; an
    operator makes room and submits it again."""

    codes = {73}

    def strike(self, attempt):
        attempt.job.storage.fill_disk()


class CheckpointDamaged(PowerOffWhileSaving):
    """All ranks die, and the disk has lost a part of the newest checkpoint."""

    moment = "two saves"

    def after(self, attempt):
        attempt.job.storage.damage_last_checkpoint(attempt.rng)


class PortTaken(Fault):
    """Another program listens where the ranks should meet, and says nothing."""

    codes = {75}
    hosts = 2

    def before(self, attempt):
        host, port = attempt.hosts[0], attempt.port
        serve = f"import socket, time; s = socket.create_server(('', {port})); time.sleep(600)"
        self.other = subprocess.Popen(host.command(["/usr/bin/python3", "-c", serve]), start_new_session=True)
        time.sleep(0.3)

    def restore(self, attempt):
        self.other.kill()
        self.other.wait()


class SickHost(Fault):
    """A card, cable or core that changes bits: the preflight finds it."""

    codes = {69}

    def before(self, attempt):
        broken = f"faulty:seed={attempt.rng.randrange(1000)},corrupt={attempt.rng.choice((1, 2))}:0-1"
        for host in attempt.hosts:
            host.sickness = {"WEFT_TRANSPORT": broken}

    def restore(self, attempt):
        for host in attempt.hosts:
            host.sickness = {}


KINDS = {
    "rank killed": Killed,
    "host drained": Drained,
    "host stopped": Stopped,
    "host slow": Slow,
    "cable pulled": CablePulled,
    "dead while saving": PowerOffWhileSaving,
    "disk full": DiskFull,
    "checkpoint damaged": CheckpointDamaged,
    "port taken": PortTaken,
    "sick host": SickHost,
}


class Plan:
    """Which fault each attempt of each job has: `share` of the jobs have one, a tenth of these two, all kinds as often."""

    def __init__(self, jobs, share, rng):
        faulty = rng.sample(range(jobs), round(jobs * share))
        twice = rng.sample(faulty, len(faulty) // 10)
        kinds = list(KINDS) * (len(faulty) * 2 // len(KINDS) + 1)
        kinds = iter(kinds)
        self.of_job = {job: [next(kinds)] for job in faulty}
        for job in twice:
            self.of_job[job].append(next(kinds))

    def needs_small_disk(self, job):
        return "disk full" in self.of_job.get(job, [])

    def fault(self, job, attempt):
        """None, or the name of a kind."""
        planned = self.of_job.get(job, [])
        return planned[attempt] if attempt < len(planned) else None
