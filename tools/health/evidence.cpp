// SPDX-License-Identifier: Apache-2.0
#include "tools/health/evidence.h"

#include <fmt/format.h>

#include <algorithm>

#include "perf/common/exit_code.h"
#include "perf/common/median.h"
#include "tools/checks/compare.h"
#include "tools/checks/kinds.h"

namespace weft::health {
namespace {

using checks::Finding;
using checks::makeFinding;

// Faults of one severity are told in this order: wrong data, a rank without a core (which makes its
// links slow as well), slow links; the worst of each first.
constexpr double kWrongData = 3e6, kStarved = 2e6, kSlow = 1e6;
constexpr double kStraggles = 0.8;  // last in so many of the meetings
constexpr double kStragglesMicroseconds = 5000;

std::string linkName(const Evidence& evidence, int from, int to) {
  return fmt::format("link from {} to {}", nameOf(evidence.members, from),
                     nameOf(evidence.members, to));
}

std::string culpritOf(const Evidence& evidence, const Suspect& suspect) {
  if (suspect.scope == Scope::Link) return linkName(evidence, suspect.from, suspect.to);
  if (suspect.scope == Scope::Rank) return nameOf(evidence.members, suspect.culprit);
  const auto first = std::ranges::find(evidence.members, suspect.culprit, &Member::hostIndex);
  return "host " + first->host;
}

// Whether something worse explains it already.
bool isExplained(const Evidence& evidence, const Suspect& suspect) {
  return std::ranges::any_of(evidence.starved, [&](int rank) {
    return suspect.scope != Scope::Host && (rank == suspect.from || rank == suspect.to);
  });
}

// A host comes before a rank, and a rank before a link.
double weightOf(const Suspect& suspect) {
  const double scope = suspect.scope == Scope::Host ? 2 : suspect.scope == Scope::Rank ? 1 : 0;
  return kSlow + 1e5 * scope + std::min(suspect.ratio(), 1e4);
}

Finding slowLink(const Evidence& evidence, const Suspect& suspect) {
  const auto way = evidence.ways[static_cast<std::size_t>(suspect.from) * evidence.members.size() +
                                 static_cast<std::size_t>(suspect.to)];
  const std::string subject = suspect.scope == Scope::Link ? "" : "even its best link, ";
  const std::string link = suspect.scope == Scope::Link
                               ? ""
                               : fmt::format("from rank {} to rank {}, ", suspect.from, suspect.to);
  if (suspect.measure == Measure::Bandwidth) {
    return makeFinding(
        "link-slow", culpritOf(evidence, suspect),
        fmt::format("{}{}carries {:.3g} GB/s by {}, where {:.3g} GB/s is usual: "
                    "{:.1f} times slower",
                    subject, link, suspect.value, way, suspect.usual, suspect.ratio()),
        weightOf(suspect));
  }
  return makeFinding("link-late", culpritOf(evidence, suspect),
                     fmt::format("{}{}takes {:.3g} us one way by {}, where {:.3g} us is usual",
                                 subject, link, suspect.value, way, suspect.usual),
                     weightOf(suspect));
}

void addWrongLinks(const Evidence& evidence, std::vector<Finding>* findings) {
  std::set<std::pair<int, int>> links = evidence.garbled;
  for (int from = 0; from < evidence.pairs.ranks(); ++from)
    for (int to = 0; to < evidence.pairs.ranks(); ++to)
      if (evidence.pairs.at(from, to).wrong > 0) links.emplace(from, to);
  if (links.empty()) links = evidence.collectives.wrongLinks;
  for (const auto& [from, to] : links) {
    findings->push_back(makeFinding("data-corrupt", linkName(evidence, from, to),
                                    "what arrived was not what was sent", kWrongData));
  }
}

// Where no link is known, at least who saw it.
void addWrongSums(const Evidence& evidence, std::vector<Finding>* findings) {
  const auto& wrong = evidence.collectives.wrongAt;
  if (!findings->empty() || wrong.empty() || std::ranges::max(wrong) == 0) return;
  const int most = static_cast<int>(std::ranges::max_element(wrong) - wrong.begin());
  const auto ranks = std::ranges::count_if(wrong, [](double count) { return count > 0; });
  findings->push_back(makeFinding(
      "sum-wrong", nameOf(evidence.members, most),
      fmt::format("{:.0f} elements of its collectives were wrong ({} ranks saw wrong ones)",
                  wrong[static_cast<std::size_t>(most)], ranks),
      kWrongData));
}

void addStarved(const Evidence& evidence, std::vector<Finding>* findings) {
  for (const int rank : evidence.starved) {
    const CoreShare& mine = evidence.shares[static_cast<std::size_t>(rank)];
    std::vector<double> others;
    for (std::size_t i = 0; i < evidence.members.size(); ++i)
      if (evidence.members[i].host == evidence.members[static_cast<std::size_t>(rank)].host &&
          static_cast<int>(i) != rank)
        others.push_back(evidence.shares[i].best);
    findings->push_back(makeFinding(
        "rank-starved", nameOf(evidence.members, rank),
        fmt::format("gets at most {:.0f} % of a core when it computes alone (it may use cores "
                    "{}), the other ranks of its host {:.0f} %",
                    mine.best * 100, mine.cores, tools::median(others) * 100),
        kStarved - mine.best));
  }
}

void addStragglers(const Evidence& evidence, std::vector<Finding>* findings) {
  const CollectiveReport& seen = evidence.collectives;
  for (std::size_t rank = 0; rank < seen.lastShare.size(); ++rank) {
    if (seen.lastShare[rank] < kStraggles || seen.lastShare.size() < 3) continue;
    if (seen.lateMicroseconds[rank] < kStragglesMicroseconds) continue;
    findings->push_back(
        makeFinding("rank-straggles", nameOf(evidence.members, static_cast<int>(rank)),
                    fmt::format("came last to {:.0f} % of the meetings, {:.1f} ms (median) after "
                                "the first, with the same work",
                                seen.lastShare[rank] * 100, seen.lateMicroseconds[rank] / 1e3),
                    seen.lateMicroseconds[rank]));
  }
}

// As nameOf() names a rank, else the host; empty if the error has neither.
std::string culpritOf(const ErrorInfo& error) {
  if (error.rank >= 0 && error.host.empty()) return fmt::format("rank {}", error.rank);
  if (error.rank >= 0)
    return fmt::format("rank {} (host {}, pid {})", error.rank, error.host, error.pid);
  return error.host.empty() ? "" : "host " + error.host;
}

checks::KindName kindOf(weftResult_t result) {
  switch (tools::exitCodeOf(result)) {
    case tools::kExitLost:
      return "rank-lost";
    case tools::kExitMismatch:
      return "ranks-disagree";
    case tools::kExitAuthentication:
      return "secret-differs";
    case tools::kExitConfiguration:
    case tools::kExitUsage:
      return "setup-failed";
    default:
      return "weft-bug";
  }
}

}  // namespace

std::vector<Finding> conclude(const Evidence& evidence) {
  std::vector<Finding> findings;
  addWrongLinks(evidence, &findings);
  addWrongSums(evidence, &findings);
  addStarved(evidence, &findings);
  for (const Suspect& suspect : evidence.suspects)
    if (!isExplained(evidence, suspect)) findings.push_back(slowLink(evidence, suspect));
  if (findings.empty()) addStragglers(evidence, &findings);
  for (const checks::HostReport& host : evidence.hosts)
    findings.insert(findings.end(), host.findings.begin(), host.findings.end());
  findings.insert(findings.end(), evidence.counters.begin(), evidence.counters.end());
  for (Finding& finding : checks::compareHosts(evidence.hosts)) findings.push_back(finding);
  checks::sortByWeight(findings);
  return findings;
}

Finding findingOf(weftResult_t result, const ErrorInfo& error) {
  const std::string culprit = culpritOf(error);
  std::string what = error.message;
  if (what.starts_with(culprit)) what.erase(0, what.find_first_not_of(": ", culprit.size()));
  Finding finding =
      makeFinding(kindOf(result), culprit.empty() ? "the job" : culprit, what, 4e6, error.fix);
  finding.error = error;
  return finding;
}

}  // namespace weft::health
