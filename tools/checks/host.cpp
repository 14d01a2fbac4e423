// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/host.h"

#include <algorithm>
#include <iterator>

#include "base/log.h"
#include "tools/checks/clock.h"
#include "tools/checks/cores.h"
#include "tools/checks/kernels.h"
#include "tools/checks/kinds.h"
#include "tools/checks/libraries.h"
#include "tools/checks/limits.h"
#include "tools/checks/memory.h"
#include "tools/checks/nics.h"
#include "tools/checks/numa.h"
#include "topology/cores.h"

namespace weft::checks {
namespace {

// What only its change says something about.
struct Snapshot {
  explicit Snapshot(const std::string& root)
      : clocks(readClocks()),
        cores(readCoreUse(root, clocks.steady)),
        oomKills(readOomKills(root)),
        nics(readNics(root)) {}

  ClockReading clocks;
  CoreUse cores;
  double oomKills;
  std::vector<Nic> nics;
};

class HostCheck {
 public:
  HostCheck(const HostOptions& options, const Progress& progress)
      : options_(options), progress_(progress), before_(options.root) {
    report_.host = hostName();
  }

  HostReport run() {
    quietChecks();
    measure(0.3, "reductions of every core",
            [&](double s) { checkKernels(coresOf(allowed_), s, report_); });
    measure(0.45, "memory: patterns",
            [&](double s) { checkMemoryPattern(s, usable_, mostBytes_, report_); });
    measure(0.25, "memory: bandwidth",
            [&](double s) { checkMemorySpeed(s, usable_, mostBytes_, report_); });
    compare();
    if (progress_) progress_(1, "done");
    sortByWeight(report_.findings);
    return std::move(report_);
  }

 private:
  static std::vector<int> coresOf(const cpu_set_t& set) {
    std::vector<int> cores;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
    }
    return cores;
  }

  void quietChecks() {
    const std::string& root = options_.root;
    const Limits limits = readLimits(root);
    mostBytes_ = std::max(0.0, std::min(limits.memoryLeft, limits.memory) / 8);
    checkCores(root, usable_, report_);
    checkLimits(limits, std::ranges::any_of(before_.nics, &Nic::rdma), report_);
    checkNuma(readNuma(root), report_);
    checkMemoryErrors(root, report_);
    checkClockCost(clockCost(), root, report_);
    checkNics(before_.nics, report_);
    checkSoftware(root, openLibraries(), report_);
  }

  // Without threads or memory a check cannot be done, which is a finding and not an end.
  template <class Check>
  void measure(double share, const char* what, Check check) {
    if (progress_) progress_(done_, what);
    done_ += share;
    try {
      check(options_.seconds * share);
    } catch (const std::exception& error) {
      report_.findings.push_back(makeFinding(
          "selftest-failed", report_.culprit(), std::string(what) + ": " + error.what(), 0.9,
          "raise the limits of threads (ulimit -u, pids.max) and memory (ulimit -v)"));
    }
  }

  void compare() {
    const Snapshot after(options_.root);
    compareClocks(before_.clocks, after.clocks, report_);
    compareCoreUse(before_.cores, after.cores, usable_, report_);
    compareOomKills(before_.oomKills, after.oomKills, report_);
    std::ranges::move(compareCounters(report_.host, before_.nics, after.nics),
                      std::back_inserter(report_.findings));
  }

  const HostOptions& options_;
  const Progress& progress_;
  const cpu_set_t allowed_ = topology::allowedCores();
  const unsigned usable_ = topology::usableCores(allowed_);
  const Snapshot before_;
  double mostBytes_ = 0;
  double done_ = 0;
  HostReport report_;
};

}  // namespace

HostReport checkHost(const HostOptions& options, const Progress& progress) {
  return HostCheck(options, progress).run();
}

}  // namespace weft::checks
