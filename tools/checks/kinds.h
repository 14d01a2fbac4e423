// SPDX-License-Identifier: Apache-2.0
// All kinds of findings that the tools can print, in one table. To add one, add its line here and
// print the section "Findings" of docs/operating.md anew: weft-doctor --kinds (a test compares).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perf/common/exit_code.h"
#include "tools/checks/finding.h"

namespace weft::checks {

struct Kind {
  std::string_view name;  // Finding::kind
  Severity severity;
  int exitCode;              // of the tool that finds it; 0 unless it is a Fault
  std::string_view meaning;  // a sentence
  std::string_view cause;    // the usual ones, a sentence
  std::string_view fix;      // Finding::fix, unless the check knows better; no full stop
};

// By what they are about: processor, memory, limits, clock, network, hosts compared, settings.
inline constexpr Kind kKinds[] = {
    {"kernel-wrong", Severity::Fault, tools::kExitBad,
     "A sum or another reduction came out different from a plain scalar reference.",
     "A core that computes wrongly, memory that flips bits, or a damaged library.",
     "take this host out of service and have its processor and memory tested"},
    {"selftest-failed", Severity::Fault, tools::kExitBad,
     "weft could not run collectives among threads of this one host.",
     "Limits on memory, threads or open files, or a security profile that forbids a system call.",
     "see the library's own words in the finding"},
    {"cpu-throttled", Severity::Warning, 0,
     "The container's CPU quota stopped this host's processes while they had work.",
     "More busy threads than the quota has cores: a stopped rank keeps all others waiting.",
     "raise or remove the CPU quota (docker --cpus, limits.cpu), or start fewer ranks"},
    {"cpu-stolen", Severity::Warning, 0,
     "The hypervisor ran somebody else while this machine had work.",
     "A shared or burstable machine type without credits, or an overbooked virtualisation host.",
     "use dedicated machines, or replace this one"},
    {"cpu-hot", Severity::Warning, 0, "The processor slowed itself down because of heat.",
     "A fan, dust, or the room.", "check the cooling of this host, or replace it"},
    {"memory-corrupt", Severity::Fault, tools::kExitBad,
     "Memory gave back something other than what was written to it.",
     "A defective memory module or memory controller.",
     "take this host out of service and have its memory tested"},
    {"memory-ecc", Severity::Fault, tools::kExitBad,
     "The memory controller has counted errors that it could not correct since the host was "
     "booted.",
     "A defective memory module.",
     "take this host out of service and have the memory module replaced"},
    {"memory-slow", Severity::Warning, 0,
     "This host's memory is far slower than that of the other hosts.",
     "A neighbour that uses the same memory, a missing memory module, another BIOS setting or "
     "machine type.",
     "look for other processes on this host, then compare its memory modules and BIOS settings"},
    {"memory-tight", Severity::Warning, 0, "There is hardly any memory left for a job.",
     "Leftovers of an earlier job, or a memory limit that is too small.",
     "end what uses the memory, or raise the container's memory limit"},
    {"oom-killed", Severity::Warning, 0,
     "The kernel killed a process of this container for want of memory while the checks ran.",
     "A memory limit that is too small.", "raise the container's memory limit"},
    {"numa-far-memory", Severity::Warning, 0,
     "Processes may run on a NUMA node whose memory they may not use.",
     "A cpuset (Slurm, Docker, numactl) that gives cores of one node and memory of another.",
     "give the processes the memory of the nodes whose cores they have (cpuset.mems)"},
    {"numa-uneven", Severity::Warning, 0,
     "A NUMA node has less than half of the memory that the others have.",
     "A memory module that is missing or was disabled at boot.",
     "compare the memory modules of the sockets (dmidecode -t memory)"},
    {"memlock-low", Severity::Fault, tools::kExitBad,
     "RDMA devices are here, but processes may not lock enough memory to use them.",
     "The default limit of locked memory; daemons such as slurmd pass theirs on.",
     "ulimit -l unlimited, docker --ulimit memlock=-1, or LimitMEMLOCK=infinity of the daemon that "
     "starts the ranks"},
    {"nofile-low", Severity::Warning, 0, "Few files and sockets may be open at once.",
     "A lowered hard limit; weft raises the soft limit to it by itself.",
     "raise the hard limit (ulimit -Hn, docker --ulimit nofile, LimitNOFILE)"},
    {"pids-low", Severity::Warning, 0, "Few further processes and threads may be started.",
     "A small pids limit of the container, or leftovers of an earlier job.",
     "raise the limit (docker --pids-limit, TasksMax) or end the leftovers"},
    {"shm-small", Severity::Note, 0,
     "/dev/shm is missing, full or very small. weft does not use it, but data loaders do.",
     "A container's default, or files that a crashed job left behind.",
     "docker --shm-size=8g, or remove leftovers from /dev/shm"},
    {"clock-unsteady", Severity::Warning, 0,
     "The time of day jumped, or ran at another speed than the steady clock.",
     "A time service that steps the clock, or a virtual machine that was paused.",
     "let chronyd or ntpd slew the clock, and step it only at boot"},
    {"clock-slow", Severity::Warning, 0, "Reading the clock takes a system call.",
     "The kernel has given up the processor's time stamp counter (hpet or acpi_pm instead).",
     "see dmesg for why; clocksource=tsc on the kernel's command line, or replace the host"},
    {"clock-offset", Severity::Warning, 0, "This host's time of day is not that of the others.",
     "The time service is not running or cannot reach its servers.",
     "start chronyd or ntpd on this host; logs and unique ids carry the time"},
    {"rdma-down", Severity::Warning, 0, "None of this host's RDMA ports is active.",
     "Cables, the switch's ports, or the subnet manager of InfiniBand.",
     "check cables and switch (ibstat, rdma link), or take the host out of service"},
    {"rdma-slow", Severity::Warning, 0,
     "An RDMA port runs at a lower rate than others of the same model in this host.",
     "A damaged cable or transceiver with which the port negotiated fewer lanes.",
     "reseat or replace the cable of that port"},
    {"rdma-no-gid", Severity::Warning, 0, "An active RoCE port has no address (GID).",
     "Its network interface is down or was not given an address.",
     "bring the port's network interface up and give it an address"},
    {"nic-no-carrier", Severity::Note, 0, "A network interface is switched on but has no link.",
     "A cable that is not there.", "connect it, or switch it off (ip link set dev NAME down)"},
    {"nic-errors", Severity::Warning, 0,
     "A network interface or RDMA port counted transmission errors while the checks ran.",
     "A damaged cable or transceiver, or a congested network that drops packets of RDMA.",
     "replace the cable of that port; for RoCE check flow control (PFC, ECN) of the switch"},
    {"nic-drops", Severity::Warning, 0, "A network interface dropped packets while the checks ran.",
     "Receive buffers that are too small, or cores too busy to empty them.",
     "enlarge the receive ring (ethtool -G) and leave a core to interrupts"},
    {"nic-flapped", Severity::Warning, 0, "A link went down and up while the checks ran.",
     "A loose or damaged cable or transceiver.", "reseat or replace the cable of that port"},
    {"limits-lower", Severity::Warning, 0, "A limit of this host is lower than the other hosts'.",
     "Another image, or a daemon that was started by hand with a shell's limits.",
     "set the limit as on the other hosts"},
    {"cpu-differs", Severity::Warning, 0, "This host's processor is not that of the others.",
     "A mixed fleet or placement.",
     "use one machine type for a job: the slowest host sets the pace of all"},
    {"cores-fewer", Severity::Warning, 0,
     "Fewer cores of this host may be used than of the others.",
     "A CPU quota or affinity mask, or cores that are offline.",
     "give the job the same cores on all hosts"},
    {"nic-differs", Severity::Warning, 0,
     "This host's network devices differ from those of the others in number, speed or MTU.",
     "A port that is down or slow, or another network configuration.",
     "bring the devices of all hosts to the same state (ip link, rdma link, ethtool)"},
    {"version-differs", Severity::Warning, 0, "This host has another version of weft.",
     "Images that were not rolled out everywhere.", "install the same weft on all hosts"},
    {"software-differs", Severity::Note, 0,
     "This host has another kernel or another version of a library that weft uses.",
     "Images that were not rolled out everywhere.", "use one image for all hosts"},
    {"data-corrupt", Severity::Fault, tools::kExitBad,
     "Data that crossed a link is not what was sent.",
     "A defective network card, cable, memory module or processor at one of the two ends.",
     "take both ends out of service, and test them with other partners to see which one it is"},
    {"sum-wrong", Severity::Fault, tools::kExitBad,
     "A collective gave a wrong result, and no link could be blamed.",
     "A core that computes wrongly, memory that flips bits, or a link that corrupts data rarely.",
     "run weft-health again on this host alone, and take it out of service if it happens again"},
    {"rank-starved", Severity::Fault, tools::kExitBad,
     "A rank gets far less of a core than the other ranks of its host.",
     "Another process on the core that the rank is bound to, or two ranks bound to one core.",
     "end the process that uses the rank's cores, or bind the ranks to other cores"},
    {"link-slow", Severity::Fault, tools::kExitBad,
     "A link, or all links of a rank or host, carry less than half of what is usual here.",
     "A damaged cable, a port that negotiated a lower rate, another job's traffic, a throttled "
     "virtual network.",
     "leave this host or link out of the job, and look at its cable, port and switch"},
    {"link-late", Severity::Fault, tools::kExitBad,
     "A link, or all links of a rank or host, have a latency far above what is usual here.",
     "A detour in the network, power saving of a core or network card, a rank without a core.",
     "leave this host or link out of the job, and look at its route and power settings"},
    {"rank-straggles", Severity::Warning, 0,
     "One rank nearly always comes last, though all do the same work.",
     "A slower or busier core, or memory of another NUMA node.",
     "look for other processes on that rank's cores (top, ps -eLo psr,pid,comm)"},
    {"rank-lost", Severity::Fault, tools::kExitLost,
     "A rank died, stopped, did not join or could not be reached any more.",
     "The host or its network went down, or somebody killed or stopped the process.",
     "start the job again without that host"},
    {"ranks-disagree", Severity::Fault, tools::kExitMismatch, "The ranks were not started alike.",
     "Another version or other settings on some hosts.",
     "start the same program with the same settings on all hosts"},
    {"secret-differs", Severity::Fault, tools::kExitAuthentication,
     "A rank did not know the secret of the job.",
     "Another WEFT_SECRET or WEFT_SECRET_FILE on some hosts, or a rank of another job.",
     "hand the same secret to all ranks"},
    {"setup-failed", Severity::Fault, tools::kExitConfiguration, "weft could not be set up.",
     "See the library's own words in the finding.", "see the library's own words in the finding"},
    {"weft-bug", Severity::Fault, tools::kExitInternal, "weft contradicted itself.",
     "A bug in weft.", "report it, with the output of WEFT_DEBUG=INFO"},
    {"slower-than-before", Severity::Warning, 0,
     "The job is slower than earlier healthy runs of as many ranks and hosts (--baseline).",
     "Other work on the hosts or in the network, or another placement.",
     "see what else runs there; begin a new history if the machines have changed"},
    {"launcher-broken", Severity::Fault, tools::kExitConfiguration,
     "A launcher's variables are there but make no sense.",
     "Variables that were set by hand, or inherited from another job.",
     "start the ranks by one launcher, and unset what is left over from another"},
    {"launcher-conflict", Severity::Note, 0,
     "Two launchers' variables say different ranks or sizes; the innermost is believed.",
     "One launcher started inside another (torchrun under srun), which is often meant.",
     "if the wrong one is believed, set WEFT_RANK and WEFT_SIZE, or unset the other's variables"},
    {"launcher-incomplete", Severity::Note, 0,
     "Only some of a launcher's variables are set, so it is not believed.",
     "A variable that another program uses under the same name, or a batch script outside of srun.",
     "start the ranks by that launcher, if they should know of each other"},
    {"env-invalid", Severity::Fault, tools::kExitConfiguration,
     "A WEFT_ variable has a value that weft refuses.", "A typing error.",
     "correct or unset it (docs/knobs.md)"},
    {"env-unknown", Severity::Warning, 0, "A WEFT_ variable is none of weft's and is ignored.",
     "A typing error, or a variable of another version.", "correct or unset it (docs/knobs.md)"},
    {"env-conflict", Severity::Warning, 0, "A variable works against another or against weft.",
     "Settings that were copied from another job or another library.", "unset one of them"},
    {"env-other-library", Severity::Note, 0,
     "A variable of another library is set that weft does not read, and weft's own is not.",
     "A job script that was written for NCCL, MPI or UCX.",
     "set weft's own if it is meant for weft"},
    {"library-missing", Severity::Warning, 0,
     "A library is missing that weft needs for the devices or the launcher that are here.",
     "A package that the image lacks.", "install it"},
    {"transport-broken", Severity::Warning, 0,
     "A transport does not work although its devices are here.",
     "See the library's own words in the finding.", "see the library's own words in the finding"},
    {"transport-none", Severity::Fault, tools::kExitBad,
     "Ranks of this host cannot reach each other.",
     "Limits on memory or open files, or a security profile that forbids a system call.",
     "see the library's own words in the finding"},
};

// The name of a kind in the table; any other does not compile.
class KindName {
 public:
  consteval KindName(const char* name) : kind_(find(name)) {}
  const Kind& kind() const { return *kind_; }

 private:
  static consteval const Kind* find(std::string_view name) {
    for (const Kind& kind : kKinds) {
      if (kind.name == name) return &kind;
    }
    throw "add this kind to the table";
  }
  const Kind* kind_;
};

// A finding of that kind, with the table's severity and, if `fix` is empty, the table's fix.
Finding makeFinding(KindName name, std::string culprit, std::string what, double weight = 0,
                    std::string fix = {});

// How a tool ends that has found these: by the worst Fault; 0 without one.
int exitCodeOf(std::span<const Finding> findings);

// The table as the section "Findings" of docs/operating.md.
std::string kindsAsMarkdown();

}  // namespace weft::checks
