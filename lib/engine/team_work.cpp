// SPDX-License-Identifier: Apache-2.0
#include "engine/team_work.h"

#include "plan/costs.h"

namespace weft::engine {
namespace {

using plan::kWorthSharing;

// A thread that shares its core may lose it for a scheduler's slice, while the others wait for its
// piece. Then only what is so long is worth it that this is the smaller part.
constexpr double kSliceNs = 4e6, kMostLoss = 0.05;

}  // namespace

void TeamWork::begin(double ns) {
  leftNs_ = ns;
  const Team::Costs& costs = crew_.team->costs();
  hasTeam_ =
      leftNs_ >= kWorthSharing * std::min(costs.awakeNs, costs.asleepNs) && crew_.team->take();
  if (hasTeam_ && crew_.cores > 1) crew_.team->stayAwake();
}

void TeamWork::end() {
  hasTeam_ = false;
  crew_.team->rest();
  crew_.team->release();
}

// For members that have a core each. Steps come one after another, and helpers that are awake take
// the next ones, too: so what is left of the call must be worth waking them.
std::uint32_t TeamWork::piecesOf(double ns) {
  const Team::Costs& costs = crew_.team->costs();
  const std::uint32_t members = crew_.team->size(), seated = std::min(members, crew_.cores);
  wakes_ = leftNs_ >= kWorthSharing * costs.asleepNs;
  leftNs_ -= ns;
  if (ns * kMostLoss >= kSliceNs) return members;
  if (seated < 2 || !(wakes_ || crew_.team->isAwake())) return 1;
  return static_cast<std::uint32_t>(
      std::clamp(ns / (kWorthSharing * costs.awakeNs), 1.0, double(seated)));
}

}  // namespace weft::engine
