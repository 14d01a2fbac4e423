// SPDX-License-Identifier: Apache-2.0
#include "tools/health/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tools/checks/json.h"
#include "tools/health/heat_map.h"
#include "tools/health/summary.h"

namespace weft::health {
namespace {

using checks::Finding;
using checks::Severity;

std::string count(std::ptrdiff_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string pairTable(const Evidence& evidence) {
  if (evidence.sweeps == 0) return {};
  std::string text =
      fmt::format("\nPairs, best of {} sweeps\n  {:<34} {:>6}  {:^26}  {:^26}\n", evidence.sweeps,
                  "", "links", "GB/s (least, median, most)", "us (least, median, most)");
  for (const auto& [name, kind] : summarize(evidence)) {
    const auto& [slowest, rate, fastest] = kind.gigabytes;
    const auto& [shortest, time, longest] = kind.microseconds;
    fmt::format_to(std::back_inserter(text),
                   "  {:<34} {:>6}  {:>8.3g} {:>8.3g} {:>8.3g}  {:>8.3g} {:>8.3g} {:>8.3g}\n", name,
                   kind.links, slowest, rate, fastest, shortest, time, longest);
  }
  return text + "\n" + heatMapText(evidence);
}

std::string collectiveTable(const Evidence& evidence) {
  if (evidence.collectives.rows.empty()) return {};
  std::string text = fmt::format("\n{:<16} {:>10} {:>12} {:>12} {:>8} {:>8}\n", "Collectives",
                                 "size (B)", "time (us)", "busbw (GB/s)", "repeats", "#wrong");
  for (const CollectiveRow& row : evidence.collectives.rows) {
    fmt::format_to(std::back_inserter(text), "  {:<14} {:>10} {:>12.1f} {:>12.3g} {:>8} {:>8.0f}\n",
                   row.name, row.bytes, row.microseconds, row.busbw, row.repeats, row.wrong);
  }
  return text;
}

std::string rankTable(const Evidence& evidence) {
  if (evidence.shares.empty() || evidence.collectives.lastShare.empty()) return {};
  constexpr std::size_t kMostRows = 32;
  std::string text = fmt::format("\n{:<34} {:>10} {:>8} {:>12} {:>8}\n", "Ranks", "cores", "of one",
                                 "late (us)", "last");
  for (std::size_t rank = 0; rank < std::min(evidence.members.size(), kMostRows); ++rank) {
    const CoreShare& share = evidence.shares[rank];
    fmt::format_to(std::back_inserter(text), "  {:<32} {:>10} {:>6.0f} % {:>12.0f} {:>6.0f} %\n",
                   nameOf(evidence.members, static_cast<int>(rank)), share.cores, share.share * 100,
                   evidence.collectives.lateMicroseconds[rank],
                   evidence.collectives.lastShare[rank] * 100);
  }
  return text;
}

nlohmann::json pairsJson(const Evidence& evidence) {
  nlohmann::json pairs = nlohmann::json::array();
  for (int from = 0; from < evidence.pairs.ranks(); ++from) {
    for (int to = 0; to < evidence.pairs.ranks(); ++to) {
      if (from == to) continue;
      const Link& link = evidence.pairs.at(from, to);
      pairs.push_back({{"from", from},
                       {"to", to},
                       {"kind", kindOf(evidence, from, to)},
                       {"latency_us", link.microseconds},
                       {"bandwidth_gbps", link.gigabytes},
                       {"wrong_words", link.wrong}});
    }
  }
  return pairs;
}

nlohmann::json collectivesJson(const Evidence& evidence) {
  nlohmann::json rows = nlohmann::json::array();
  for (const CollectiveRow& row : evidence.collectives.rows)
    rows.push_back({{"name", row.name},
                    {"bytes", row.bytes},
                    {"time_us", row.microseconds},
                    {"busbw_gbps", row.busbw},
                    {"repeats", row.repeats},
                    {"wrong_elements", row.wrong}});
  return rows;
}

nlohmann::json ranksJson(const Evidence& evidence) {
  nlohmann::json ranks = nlohmann::json::array();
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    nlohmann::json rank = {
        {"rank", i}, {"host", evidence.members[i].host}, {"pid", evidence.members[i].pid}};
    if (i < evidence.shares.size()) {
      rank["core_share"] = evidence.shares[i].share;
      rank["cores"] = evidence.shares[i].cores;
    }
    if (i < evidence.collectives.lastShare.size()) {
      rank["late_us"] = evidence.collectives.lateMicroseconds[i];
      rank["last_share"] = evidence.collectives.lastShare[i];
    }
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

}  // namespace

std::string verdict(const Evidence& evidence, const std::vector<Finding>& findings) {
  const auto faults = std::ranges::count(findings, Severity::Fault, &Finding::severity);
  const auto warnings = std::ranges::count(findings, Severity::Warning, &Finding::severity);
  const auto hosts = evidence.members.empty()
                         ? 0
                         : std::ranges::max(evidence.members, {}, &Member::hostIndex).hostIndex + 1;
  const std::string job =
      fmt::format("{} on {}, {:.1f} s", count(std::ssize(evidence.members), "rank"),
                  count(hosts, "host"), evidence.seconds);
  if (faults > 0)
    return fmt::format("UNHEALTHY: {} ({}; {})", findings.front().culprit, count(faults, "fault"),
                       job);
  if (warnings > 0) return fmt::format("healthy, with {} ({})", count(warnings, "warning"), job);
  return fmt::format("healthy ({})", job);
}

std::string reportText(const Evidence& evidence, const std::vector<Finding>& findings) {
  std::string text = "weft-health: " + verdict(evidence, findings) + "\n";
  for (const Finding& finding : findings) text += toText(finding);
  return text + pairTable(evidence) + collectiveTable(evidence) + rankTable(evidence);
}

nlohmann::json reportJson(const Evidence& evidence, const std::vector<Finding>& findings,
                          int exitCode) {
  nlohmann::json json = {{"tool", "weft-health"},
                         {"verdict", verdict(evidence, findings)},
                         {"exit_code", exitCode},
                         {"seconds", evidence.seconds},
                         {"ranks", ranksJson(evidence)},
                         {"pairs", pairsJson(evidence)},
                         {"collectives", collectivesJson(evidence)},
                         {"findings", nlohmann::json::array()},
                         {"hosts", nlohmann::json::array()}};
  for (const Finding& finding : findings) json["findings"].push_back(toJson(finding));
  for (const checks::HostReport& host : evidence.hosts) json["hosts"].push_back(toJson(host));
  return json;
}

}  // namespace weft::health
