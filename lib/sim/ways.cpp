// SPDX-License-Identifier: Apache-2.0
#include "sim/ways.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"

namespace weft::sim {
namespace {

constexpr std::uint64_t kOfGroups = std::uint64_t{1} << 63;

void addUse(const Use& use, std::vector<Use>* uses) {
  const auto same = std::ranges::find(*uses, use.resource, &Use::resource);
  if (same == uses->end())
    uses->push_back(use);
  else
    same->weight += use.weight;
}

std::uint64_t hashOf(const std::vector<Use>& uses, double latencyNs) {
  Hash hash;
  for (const Use& use : uses)
    hash.add(use.resource).add(static_cast<std::uint64_t>(std::llround(use.weight * 1e9)));
  return hash.add(static_cast<std::uint64_t>(timeOf(latencyNs))).value();
}

}  // namespace

const Way& Ways::between(std::uint32_t from, std::uint32_t to) {
  const bool isNear = network_.nodeOf(from) == network_.nodeOf(to);
  const std::uint64_t key =
      isNear ? std::uint64_t{from} << 32 | to
             : kOfGroups | std::uint64_t{network_.groupOf(from)} << 32 | network_.groupOf(to);
  const auto [known, isNew] = known_.try_emplace(key, std::uint32_t{0});
  if (isNew) known->second = find(from, to);
  return ways_[known->second];
}

std::uint32_t Ways::find(std::uint32_t from, std::uint32_t to) {
  Route route;
  network_.findRoute(from, to, &route);
  std::vector<Use> uses;
  for (const Use& use : route.uses) addUse(symmetry_.folded(use), &uses);
  if (network_.limitsMemory())  // links read and write it, too
    for (const std::uint32_t rank : {from, to})
      addUse(symmetry_.folded({network_.memoryOf(network_.nodeOf(rank)), 1}), &uses);
  std::ranges::sort(uses, {}, &Use::resource);
  const auto number = static_cast<std::uint32_t>(ways_.size());
  // Groups of two nodes use what no other two use, unless nodes are folded.
  if (!symmetry_.folds() && network_.nodeOf(from) != network_.nodeOf(to)) {
    ways_.push_back({sharing_.addChannel(uses), timeOf(route.latencyNs)});
    return number;
  }
  const auto [known, isNew] = byUses_.try_emplace(hashOf(uses, route.latencyNs), number);
  if (isNew) ways_.push_back({sharing_.addChannel(uses), timeOf(route.latencyNs)});
  return known->second;
}

}  // namespace weft::sim
