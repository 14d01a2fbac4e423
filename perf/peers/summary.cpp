// SPDX-License-Identifier: Apache-2.0
#include "summary.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace weft::peers {
namespace {

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<double> medianIfAny(const Rounds& rounds) {
  if (rounds.empty()) return std::nullopt;
  return median(rounds);
}

Rounds roundsOf(const Point& point, const char* contender) {
  const auto found = point.find(contender);
  return found == point.end() ? Rounds{} : found->second;
}

std::string bestPeer(const Point& point) {
  std::string best;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [name, rounds] : point) {
    if (!isPeer(name) || median(rounds) >= least) continue;
    least = median(rounds);
    best = name;
  }
  return best;
}

}  // namespace

std::vector<Series> arrange(const std::vector<Measurement>& measurements) {
  std::map<std::tuple<int, Collective, Mode>, Series> all;
  for (const Measurement& m : measurements) {
    Series& series = all[{m.ranks, m.collective, m.mode}];
    series.ranks = m.ranks;
    series.collective = m.collective;
    series.mode = m.mode;
    series.points[m.bytes][m.contender][m.round] = m.timing.median;
  }
  std::vector<Series> ordered;
  for (auto& [key, series] : all) ordered.push_back(std::move(series));
  return ordered;
}

std::vector<std::string> contenderNames(const std::vector<Measurement>& measurements) {
  std::vector<std::string> names;
  for (const Measurement& m : measurements) {
    if (!isFloor(m.contender)) names.push_back(m.contender);
  }
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return std::make_tuple(!isWeft(a), a) < std::make_tuple(!isWeft(b), b);
  });
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string libraryOf(const std::string& contender) {
  return contender.substr(0, contender.find(':'));
}

bool isFloor(const std::string& contender) { return libraryOf(contender) == "floor"; }
bool isWeft(const std::string& contender) { return libraryOf(contender) == "weft"; }
bool isPeer(const std::string& contender) { return !isWeft(contender) && !isFloor(contender); }

double median(const Rounds& rounds) {
  std::vector<double> values;
  for (const auto& [round, us] : rounds) values.push_back(us);
  return middle(std::move(values));
}

std::optional<Ratio> ratio(const Rounds& a, const Rounds& b) {
  std::vector<double> ratios;
  for (const auto& [round, us] : a) {
    const auto other = b.find(round);
    if (other != b.end()) ratios.push_back(us / other->second);
  }
  if (ratios.empty()) return std::nullopt;
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  return Ratio{middle(ratios), *least, *most};
}

Summary summarize(const Point& point) {
  const Rounds any = roundsOf(point, "weft:any");
  const Rounds own = roundsOf(point, "weft:own");
  const Rounds threads = roundsOf(point, "weft:threads");
  const Rounds peer = fastest(point, isPeer);
  const Rounds floor = fastest(point, isFloor);
  Summary summary;
  summary.any = medianIfAny(any);
  summary.own = medianIfAny(own);
  summary.threads = medianIfAny(threads);
  summary.peer = medianIfAny(peer);
  summary.floor = medianIfAny(floor);
  summary.bestPeer = bestPeer(point);
  summary.anyToPeer = ratio(any, peer);
  summary.ownToPeer = ratio(own, peer);
  summary.anyToFloor = ratio(any, floor);
  summary.ownToFloor = ratio(own, floor);
  summary.peerToFloor = ratio(peer, floor);
  summary.threadsToAny = ratio(threads, any);
  return summary;
}

}  // namespace weft::peers
