// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "perf/common/median.h"
#include "tools/checks/kinds.h"
#include "tools/checks/units.h"

namespace weft::checks {
namespace {

constexpr double kSlowMemory = 0.5;     // of the others' median
constexpr double kMostClockOffset = 2;  // s; ranks leave a barrier at most that far apart

using Hosts = std::span<const HostReport>;

// A fact that is a number, of each host that has it.
std::vector<std::pair<const HostReport*, double>> numbers(Hosts hosts, std::string_view name) {
  std::vector<std::pair<const HostReport*, double>> all;
  for (const HostReport& host : hosts) {
    if (const Fact* fact = host.find(name)) all.emplace_back(&host, fact->value);
  }
  return all;
}

// Calls judge(host, its value, the median of the others' values).
template <class Judge>
void againstOthers(Hosts hosts, std::string_view name, Judge judge) {
  const auto all = numbers(hosts, name);
  for (std::size_t i = 0; all.size() > 1 && i < all.size(); ++i) {
    std::vector<double> others;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (k != i) others.push_back(all[k].second);
    }
    judge(*all[i].first, all[i].second, tools::median(std::move(others)));
  }
}

void compareMemory(Hosts hosts, std::vector<Finding>& findings) {
  againstOthers(hosts, "memory.bandwidth", [&](const HostReport& host, double own, double others) {
    if (own >= kSlowMemory * others) return;
    findings.push_back(makeFinding(
        "memory-slow", host.culprit(),
        fmt::format("{:.1f} GB/s, the median of the others is {:.1f} GB/s", own, others),
        1 - own / others));
  });
}

void compareLimits(Hosts hosts, std::vector<Finding>& findings) {
  struct Limit {
    const char* fact;
    const char* words;
    std::string (*print)(double);
    const char* fix;
  };
  constexpr Limit kLimits[] = {
      {"limits.memlock", "of locked memory for each process", inBytes,
       "ulimit -l, docker --ulimit memlock=-1 or LimitMEMLOCK, as on the other hosts"},
      {"limits.nofile", "open files for each process", inCount,
       "ulimit -Hn, docker --ulimit nofile or LimitNOFILE, as on the other hosts"}};
  for (const Limit& limit : kLimits) {
    againstOthers(hosts, limit.fact, [&](const HostReport& host, double own, double others) {
      if (own >= others) return;
      findings.push_back(makeFinding("limits-lower", host.culprit(),
                                     fmt::format("{} {}, the others have {}", limit.print(own),
                                                 limit.words, limit.print(others)),
                                     0.7, limit.fix));
    });
  }
}

void compareCores(Hosts hosts, std::vector<Finding>& findings) {
  againstOthers(hosts, "cores.usable", [&](const HostReport& host, double own, double others) {
    if (own >= others) return;
    findings.push_back(
        makeFinding("cores-fewer", host.culprit(),
                    fmt::format("{:.0f} cores may be used, {:.0f} of the others", own, others),
                    1 - own / others));
  });
}

// Against the median of all, not of the others: of three, one that is off pulls that of the others.
void compareClockStamps(Hosts hosts, std::vector<Finding>& findings) {
  const auto all = numbers(hosts, "clock.stamp");
  if (all.empty()) return;
  std::vector<double> stamps;
  for (const auto& [host, stamp] : all) stamps.push_back(stamp);
  const auto middle = stamps.begin() + static_cast<std::ptrdiff_t>((stamps.size() - 1) / 2);
  std::ranges::nth_element(stamps, middle);
  for (const auto& [host, stamp] : all) {
    const double offset = stamp - *middle;
    if (std::abs(offset) <= kMostClockOffset) continue;
    findings.push_back(
        makeFinding("clock-offset", host->culprit(),
                    fmt::format("its clock is {:.1f} s {} that of the others", std::abs(offset),
                                offset < 0 ? "behind" : "ahead of"),
                    std::min(1.0, std::abs(offset) / 3600)));
  }
}

// The value that most hosts have; the first seen of equally frequent ones.
std::string usualText(Hosts hosts, std::string_view name) {
  std::map<std::string, std::size_t> counts;
  const std::string* usual = nullptr;
  for (const HostReport& host : hosts) {
    if (const Fact* fact = host.find(name)) ++counts[fact->text];
  }
  for (const HostReport& host : hosts) {
    const Fact* fact = host.find(name);
    if (fact && (!usual || counts[fact->text] > counts[*usual])) usual = &fact->text;
  }
  return usual ? *usual : std::string();
}

void compareText(Hosts hosts, std::string_view name, KindName kind, std::string_view words,
                 double weight, std::vector<Finding>& findings) {
  const std::string usual = usualText(hosts, name);
  for (const HostReport& host : hosts) {
    const Fact* fact = host.find(name);
    if (fact == nullptr || fact->text == usual) continue;
    findings.push_back(makeFinding(
        kind, host.culprit(),
        fmt::format("{} {}, the others {}", words, fact->text.empty() ? "none" : fact->text,
                    usual.empty() ? "none" : usual),
        weight));
  }
}

void compareTexts(Hosts hosts, std::vector<Finding>& findings) {
  compareText(hosts, "nics.rdma", "nic-differs", "RDMA ports:", 0.6, findings);
  compareText(hosts, "nics.net", "nic-differs", "network interfaces:", 0.5, findings);
  compareText(hosts, "weft.version", "version-differs", "weft", 0.9, findings);
  compareText(hosts, "cpu.model", "cpu-differs", "processor", 0.4, findings);
  compareText(hosts, "cpu.features", "cpu-differs", "instruction sets", 0.4, findings);
  compareText(hosts, "kernel.release", "software-differs", "kernel", 0, findings);
  for (const char* library : {"libfabric", "libibverbs", "libhwloc"}) {
    compareText(hosts, std::string("library.") + library, "software-differs", library, 0, findings);
  }
}

}  // namespace

std::vector<Finding> compareHosts(std::span<const HostReport> hosts) {
  std::vector<Finding> findings;
  compareMemory(hosts, findings);
  compareLimits(hosts, findings);
  compareCores(hosts, findings);
  compareClockStamps(hosts, findings);
  compareTexts(hosts, findings);
  sortByWeight(findings);
  return findings;
}

}  // namespace weft::checks
