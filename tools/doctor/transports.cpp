// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/transports.h"

#include <fmt/format.h>

#include <algorithm>

#include "perf/common/exit_code.h"
#include "tools/checks/kinds.h"

namespace weft::doctor {
namespace {

using checks::HostReport;
using checks::makeFinding;

const Probe* named(std::span<const Probe> probes, std::string_view transport) {
  const auto found = std::ranges::find(probes, transport, &Probe::transport);
  return found == probes.end() ? nullptr : &*found;
}

// What weft takes between hosts: the first that works. Behind the comma stands which addresses the
// two processes of this host took, which between hosts are others.
std::string betweenHosts(std::span<const Probe> probes) {
  for (const char* transport : {"verbs", "ofi"}) {
    const Probe* const probe = named(probes, transport);
    if (probe && probe->works())
      return fmt::format("{} ({})", transport, probe->says.substr(0, probe->says.find(',')));
  }
  return "none";
}

void addFinding(checks::KindName kind, const std::string& culprit, const std::string& before,
                const Probe& probe, HostReport& report) {
  report.findings.push_back(makeFinding(kind, culprit, before + probe.says, 0.9, probe.fix));
}

void judgeWanted(const Probe& probe, HostReport& report) {
  if (probe.works()) return;
  if (probe.exitCode == tools::kExitUsage)
    addFinding("env-invalid", "environment", "", probe, report);
  else if (probe.exitCode == tools::kExitConfiguration)
    addFinding("env-invalid", "environment", "what WEFT_TRANSPORT asks for is not here: ", probe,
               report);
  else
    addFinding("transport-broken", report.culprit(), "what WEFT_TRANSPORT asks for: ", probe,
               report);
}

void judge(const Probe& probe, const Devices& devices, HostReport& report) {
  if (probe.works()) return;
  if (probe.transport == "shm")
    addFinding("transport-none", report.culprit(), "two processes that share memory: ", probe,
               report);
  else if (probe.transport == "verbs" && devices.roce)
    addFinding("transport-broken", report.culprit(), "RoCE devices are here, but verbs: ", probe,
               report);
  else if (probe.transport == "ofi" && devices.efa)
    addFinding("transport-broken", report.culprit(), "EFA devices are here, but ofi: ", probe,
               report);
}

// Why it is needed here; empty if it is not.
std::string needOf(const checks::Library& library, const Devices& devices, const Job& job) {
  const bool manyHosts = job.localSize > 0 && job.size > job.localSize;
  if (library.name == "libibverbs" && devices.roce) return "RoCE devices are here";
  if (library.name == "libfabric" && devices.efa) return "EFA devices are here";
  if (library.name == "libfabric" && manyHosts && !devices.roce) return "the job has several hosts";
  if (library.name == "libpmix" && job.launcher == "PMIx") return "the launcher speaks PMIx";
  if (library.name == "libcrypto") return "ranks prove to each other who they are";
  return {};
}

}  // namespace

Devices devicesOf(const std::vector<checks::Nic>& nics) {
  constexpr std::string_view kAmazon = "0x1d0f:";
  Devices devices;
  for (const checks::Nic& nic : nics) {
    const bool efa = nic.rdma && nic.model.starts_with(kAmazon);
    devices.efa |= efa;
    devices.roce |= nic.rdma && !efa;
  }
  return devices;
}

std::vector<Probe> probeTransports(bool wanted) {
  std::vector<Probe> probes;
  for (const char* transport : {"shm", "verbs", "ofi"}) probes.push_back(probe(transport));
  if (wanted) probes.push_back(probe(""));
  return probes;
}

void checkTransports(std::span<const Probe> probes, const Devices& devices, HostReport& report) {
  const Probe* const wanted = named(probes, "");
  const Probe* const memory = named(probes, "shm");
  if (wanted) report.add("transport.wanted", wanted->says);
  report.add("transport.between-processes", memory && memory->works() ? memory->says : "none");
  report.add("transport.between-hosts", betweenHosts(probes));
  for (const Probe& probe : probes) {
    if (&probe == wanted) continue;
    report.add("transport." + probe.transport,
               (probe.works() ? "works: " : "does not work: ") + probe.says);
    judge(probe, devices, report);
  }
  if (wanted) judgeWanted(*wanted, report);
}

void checkLibraries(std::span<const checks::Library> libraries, const Devices& devices,
                    const Job& job, HostReport& report) {
  for (const checks::Library& library : libraries) {
    const std::string need = needOf(library, devices, job);
    if (!library.version.empty() || need.empty()) continue;
    report.findings.push_back(makeFinding(
        "library-missing", report.culprit(),
        fmt::format("{} cannot be opened, which is for {}: {} ({})", library.file, library.purpose,
                    need, library.problem),
        0.8, "apt install " + library.package + ", or your distribution's package of it"));
  }
}

}  // namespace weft::doctor
