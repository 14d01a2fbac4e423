# SPDX-License-Identifier: Apache-2.0
"""Hosts of one machine, as tests/rigs/hosts/net.sh makes them: network namespaces on a switch, with names of their own."""

import os
import pathlib
import signal
import subprocess
import threading
import time

NET = pathlib.Path(__file__).resolve().parent.parent / "hosts/net.sh"
REPAIR = 4  # seconds that a host is out of service


class Host:
    def __init__(self, net, number):
        self.net, self.number = net, number
        self.name, self.address = f"node{number}", f"10.77.0.{number + 1}"
        self.sickness = {}  # variables of what runs here
        self.back_at = 0.0  # in service from then on
        self.sent_away = 0  # how often it was taken out of service

    def command(self, argv):
        """The same, on this host and by its name."""
        rename = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', self.name]
        return ["ip", "netns", "exec", f"{self.net}host{self.number}", *rename, *argv]

    def cable(self, is_in):
        """Pulled, or in again."""
        state = "up" if is_in else "down"
        subprocess.run(["ip", "-n", self.net + "switch", "link", "set", f"port{self.number}", state], check=True)

    def repair(self):
        self.sickness = {}
        self.cable(True)


class Pool:
    """Who has which host. Hosts that were found bad are out of service for a while and come back repaired."""

    def __init__(self, count):
        self.net = f"batch{os.getpid()}"
        self.hosts = [Host(self.net, number) for number in range(count)]
        self.free, self.changed = list(self.hosts), threading.Condition()

    def __enter__(self):
        self.shell(f"hosts_up {len(self.hosts)} 1gbit")
        return self

    def __exit__(self, *_):
        self.shell("hosts_down")

    def shell(self, command):
        subprocess.run(["bash", "-c", f"source {NET}; hosts_net={self.net}; {command}"], check=True)

    def take(self, count, avoid, rng):
        """So many hosts, none of `avoid` as long as there are others."""
        with self.changed:
            while True:
                now = time.monotonic()
                ready = [host for host in self.free if host.back_at <= now]
                liked = [host for host in ready if host.name not in avoid]
                if len(liked) >= count or (len(ready) >= count and len(ready) == len(self.hosts)):
                    taken = rng.sample(liked if len(liked) >= count else ready, count)
                    self.free = [host for host in self.free if host not in taken]
                    return taken
                self.changed.wait(0.5)

    def give_back(self, hosts, bad=()):
        with self.changed:
            for host in hosts:
                if host in bad:
                    host.repair()
                    host.back_at, host.sent_away = time.monotonic() + REPAIR, host.sent_away + 1
                self.free.append(host)
            self.changed.notify_all()


class Program:
    """One program of a job: a process on each of its hosts, the first of which is the main one."""

    def __init__(self, hosts, commands, log, variables):
        self.hosts = hosts
        self.processes = []
        with open(log, "ab") as out:
            for host, command in zip(hosts, commands):
                environment = {**os.environ, **variables, **host.sickness, **command[1]}
                self.processes.append(
                    subprocess.Popen(host.command(command[0]), env=environment, stdout=out, stderr=out,
                                     stdin=subprocess.DEVNULL, start_new_session=True))

    def is_running(self):
        return any(process.poll() is None for process in self.processes)

    def signal_host(self, which, number):
        """To all processes of this job on that host: what befalls a host befalls all of them."""
        try:
            os.killpg(self.processes[which].pid, number)
        except ProcessLookupError:
            pass

    def ranks_on(self, which):
        """The process ids of the ranks there: those that a launcher started, or the process itself."""
        pid = self.processes[which].pid
        try:
            started = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            started = []
        return [int(child) for child in started] or [pid]

    def end(self):
        for which in range(len(self.processes)):
            self.signal_host(which, signal.SIGKILL)
        for process in self.processes:
            process.wait()

    def code(self, which):
        """128 + n by signal n, as a shell says it; None while it runs."""
        code = self.processes[which].poll()
        return 128 - code if code is not None and code < 0 else code
