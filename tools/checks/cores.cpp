// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "tools/checks/kinds.h"
#include "tools/checks/system_files.h"

namespace weft::checks {
namespace {

constexpr double kMostStolen = 0.2;     // of the time that was wanted
constexpr double kMostThrottled = 0.2;  // of the time of the usable cores
constexpr double kMostHot = 0.1;

// "cpu user nice system idle iowait irq softirq steal ...", in ticks.
void readTicks(const std::string& line, CoreUse* use) {
  std::istringstream words(line);
  std::string cpu;
  words >> cpu;
  std::array<double, 8> ticks{};
  for (double& t : ticks) words >> t;
  const auto [user, nice, system, idle, wait, irq, softirq, steal] = ticks;
  use->busy = user + nice + system + irq + softirq;
  use->stolen = steal;
}

// Of this process's own group: the groups above it have quotas of their own, and are rare.
double readThrottled(const std::string& root) {
  for (const std::string& folder : cgroupFolders(root, "cpu")) {
    const auto stat = readKeys(folder + "/cpu.stat");
    if (const auto us = stat.find("throttled_usec"); us != stat.end()) return us->second * 1e-6;
    if (const auto ns = stat.find("throttled_time"); ns != stat.end()) return ns->second * 1e-9;
  }
  return 0;
}

double readHot(const std::string& root) {
  const std::string cpus = root + "/sys/devices/system/cpu/";
  double ms = 0;
  for (int core : parseList(readLine(cpus + "online")))
    ms +=
        readNumber(fmt::format("{}cpu{}/thermal_throttle/core_throttle_total_time_ms", cpus, core))
            .value_or(0);
  return ms * 1e-3;
}

// Those of the instruction sets that weft's kernels are built for and what speeds up 16-bit types.
std::string vectorFeatures(const std::string& flags) {
  std::istringstream words(flags);
  std::string found;
  for (std::string word; words >> word;) {
    for (const char* wanted : {"sse4_2", "avx2", "f16c", "fma", "avx512f", "avx512bw",
                               "avx512_bf16", "avx512_fp16", "asimd", "sve", "sve2"}) {
      if (word == wanted) found += (found.empty() ? "" : " ") + word;
    }
  }
  return found;
}

}  // namespace

CoreUse readCoreUse(const std::string& root, double steady) {
  CoreUse use;
  use.steady = steady;
  readTicks(readLine(root + "/proc/stat"), &use);
  use.throttled = readThrottled(root);
  use.hot = readHot(root);
  return use;
}

void checkCores(const std::string& root, unsigned usable, HostReport& report) {
  const std::string cpuinfo = root + "/proc/cpuinfo";
  const std::string model = readField(cpuinfo, "model name");
  std::string features = vectorFeatures(readField(cpuinfo, "flags"));
  if (features.empty()) features = vectorFeatures(readField(cpuinfo, "Features"));
  report.add("cpu.model", model.empty() ? readField(cpuinfo, "CPU part") : model);
  report.add("cpu.features", features);
  const auto count = [](const std::string& list) {
    return static_cast<double>(parseList(list).size());
  };
  report.add("cores.online", count(readLine(root + "/sys/devices/system/cpu/online")), "");
  report.add("cores.allowed", count(readField(root + "/proc/self/status", "Cpus_allowed_list")),
             "");
  report.add("cores.usable", usable, "");
  report.add("cores.load", readNumber(root + "/proc/loadavg").value_or(0), "");
  const std::string governor =
      readLine(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!governor.empty()) report.add("cores.governor", governor);
}

void compareCoreUse(const CoreUse& before, const CoreUse& after, unsigned usable,
                    HostReport& report) {
  const auto find = [&](KindName kind, double share, const char* what) {
    report.findings.push_back(makeFinding(
        kind, report.culprit(), fmt::format("{:.0f} % of the time {}", share * 100, what), share));
  };
  const double seconds = (after.steady - before.steady) * std::max(1u, usable);
  const double wanted = (after.busy - before.busy) + (after.stolen - before.stolen);
  if (seconds <= 0) return;
  const double stolen = wanted > 0 ? (after.stolen - before.stolen) / wanted : 0;
  const double throttled = (after.throttled - before.throttled) / seconds;
  const double hot = (after.hot - before.hot) / seconds;
  report.add("cores.stolen", stolen * 100, "%");
  report.add("cores.throttled", throttled * 100, "%");
  if (stolen > kMostStolen) find("cpu-stolen", stolen, "that was wanted the hypervisor gave away");
  if (throttled > kMostThrottled)
    find("cpu-throttled", std::min(1.0, throttled), "processes were stopped by the CPU quota");
  if (hot > kMostHot) find("cpu-hot", std::min(1.0, hot), "cores were slowed down by heat");
}

}  // namespace weft::checks
