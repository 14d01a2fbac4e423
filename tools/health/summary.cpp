// SPDX-License-Identifier: Apache-2.0
#include "tools/health/summary.h"
#include "perf/common/median.h"

#include <algorithm>

namespace weft::health {
namespace {

Spread spreadOf(const std::vector<double>& values) {
  if (values.empty()) return {};
  return {std::ranges::min(values), tools::median(values), std::ranges::max(values)};
}

}  // namespace

std::string kindOf(const Evidence& evidence, int from, int to) {
  const auto a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(to);
  const bool between = evidence.members[a].hostIndex != evidence.members[b].hostIndex;
  return (between ? "between hosts, " : "inside hosts, ") +
         evidence.ways[a * evidence.members.size() + b];
}

std::map<std::string, KindOfLink> summarize(const Evidence& evidence) {
  std::map<std::string, std::vector<Link>> links;
  for (int from = 0; from < evidence.pairs.ranks(); ++from)
    for (int to = 0; to < evidence.pairs.ranks(); ++to)
      if (from != to) links[kindOf(evidence, from, to)].push_back(evidence.pairs.at(from, to));
  std::map<std::string, KindOfLink> kinds;
  for (const auto& [kind, all] : links) {
    std::vector<double> times, rates;
    for (const Link& link : all) {
      times.push_back(link.microseconds);
      rates.push_back(link.gigabytes);
    }
    kinds[kind] = {all.size(), spreadOf(times), spreadOf(rates)};
  }
  return kinds;
}

}  // namespace weft::health
