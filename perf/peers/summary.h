// SPDX-License-Identifier: Apache-2.0
// What the measurements of a run say: who was how fast at each point, and the ratios that matter.
// Ratios are taken within each round, so that a slow round of everybody counts for nobody.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control.h"

namespace weft::peers {

// One contender's median at one point of one round.
struct Measurement {
  int ranks = 0;
  int round = 0;
  Collective collective{};
  Mode mode{};
  std::uint64_t bytes = 0;
  std::string contender;
  Timing timing;
};

using Rounds = std::map<int, double>;         // round -> microseconds
using Point = std::map<std::string, Rounds>;  // contender -> its rounds

// All sizes of one collective, for one number of ranks and one mode.
struct Series {
  int ranks = 0;
  Collective collective{};
  Mode mode{};
  std::map<std::uint64_t, Point> points;  // by bytes
};

// Ordered by ranks, then collective, then mode.
std::vector<Series> arrange(const std::vector<Measurement>& measurements);

// All contenders but the floor's forms: weft's first.
std::vector<std::string> contenderNames(const std::vector<Measurement>& measurements);

bool isFloor(const std::string& contender);
bool isWeft(const std::string& contender);
bool isPeer(const std::string& contender);
std::string libraryOf(const std::string& contender);  // "openmpi" of "openmpi:sm128k"

// Over the rounds; `rounds` must not be empty.
double median(const Rounds& rounds);

// In each round, the fastest of the contenders for which wanted(name).
template <typename Predicate>
Rounds fastest(const Point& point, Predicate wanted) {
  Rounds best;
  for (const auto& [name, rounds] : point) {
    if (!wanted(name)) continue;
    for (const auto& [round, us] : rounds) {
      const auto [entry, isNew] = best.emplace(round, us);
      if (!isNew && us < entry->second) entry->second = us;
    }
  }
  return best;
}

struct Ratio {
  double median = 0;
  double least = 0;
  double most = 0;
};

// a / b over the rounds that have both; none: no value.
std::optional<Ratio> ratio(const Rounds& a, const Rounds& b);

// One point. "any", "own" and "threads" are weft with malloc'ed buffers, with weftMemAlloc's, and
// with threads for ranks; the peer is the fastest of each round, the floor its fastest form.
struct Summary {
  std::optional<double> any, own, threads, peer, floor;  // medians in microseconds
  std::string bestPeer;                                  // of the medians; "" without peers
  std::optional<Ratio> anyToPeer, ownToPeer, anyToFloor, ownToFloor, peerToFloor, threadsToAny;
};

Summary summarize(const Point& point);

}  // namespace weft::peers
