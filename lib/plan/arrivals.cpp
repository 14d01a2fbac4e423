// SPDX-License-Identifier: Apache-2.0
#include "plan/arrivals.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "schedule/nodes.h"

namespace weft::plan {
namespace {

// Rings need about 2 for each rank.
std::uint32_t mostPerPeer(std::uint32_t ranks) { return 4 * ranks + 16; }

// Where nodes differ in size, ranks of the smallest pass on the most, and the first of a node as
// much as any of them.
std::vector<std::uint32_t> typicalRanks(const schedule::Algorithm& algorithm,
                                        const Tuning& tuning) {
  if (algorithm.levels == schedule::Levels::One) return {0, 1 % tuning.ranks};
  const schedule::Nodes nodes(tuning.nodes);
  std::vector<std::uint32_t> ranks;
  std::vector<bool> seen(tuning.ranks + 1, false);
  for (std::uint32_t node = 0; node < nodes.count(); ++node) {
    if (seen[nodes.size(node)]) continue;
    seen[nodes.size(node)] = true;
    for (std::uint32_t localRank = 0; localRank < std::min(2u, nodes.size(node)); ++localRank)
      ranks.push_back(nodes.members(node)[localRank]);
  }
  return ranks;
}

// The most arrivals that one rank raises at another.
std::uint32_t arrivalsOf(const schedule::Program& program, std::uint32_t ranks) {
  std::vector<std::uint32_t> at(ranks, 0);
  for (const schedule::Op& op : program.ops)
    if (op.kind == schedule::OpKind::Put) at[op.peer] += std::max(1u, op.chunks);
  return *std::ranges::max_element(at);
}

std::uint32_t arrivalsOf(const schedule::Algorithm& algorithm, const Tuning& tuning) {
  const schedule::Schedule schedule = algorithm.make(shapeOf(tuning));
  std::uint32_t most = 0;
  for (const std::uint32_t rank : typicalRanks(algorithm, tuning))
    most = std::max(most, arrivalsOf(schedule.program(rank), tuning.ranks));
  return most;
}

// With what may come along: the all-gather after a reduce-scatter (a step), and a clear-to-send.
std::uint32_t arrivalsWithAll(const schedule::Algorithm& algorithm, const Tuning& tuning) {
  const std::uint32_t arrivals = arrivalsOf(algorithm, tuning) + 1;
  if (algorithm.collective != schedule::Collective::ReduceScatter) return arrivals;
  const schedule::Algorithm* gather =
      schedule::findAlgorithm(schedule::Collective::AllGather, algorithm.name);
  return gather == nullptr ? arrivals : arrivals + arrivalsOf(*gather, tuning);
}

bool fitsNodes(const schedule::Algorithm& algorithm, const Tuning& tuning) {
  if (algorithm.levels == schedule::Levels::TwoEven) return shapeOf(tuning).localRanks > 1;
  return algorithm.levels == schedule::Levels::One || hasLevels(tuning);
}

}  // namespace

std::uint32_t arrivalsPerPeer(const Tuning& tuning) {
  std::uint32_t most = 0;
  for (const schedule::Algorithm& algorithm : schedule::algorithms()) {
    // On shared buffers it is never more than the mesh's, and to make one is to make all ranks'.
    if (algorithm.shared || !fitsNodes(algorithm, tuning)) continue;
    const std::uint32_t needs = arrivalsWithAll(algorithm, tuning);
    if (needs <= mostPerPeer(tuning.ranks)) most = std::max(most, needs);
  }
  return most;
}

Status checkArrivals(const schedule::Algorithm& algorithm, const Tuning& tuning) {
  const bool uneven = algorithm.levels == schedule::Levels::Two && shapeOf(tuning).localRanks == 1;
  if (!uneven) return {};
  const std::uint32_t needs = arrivalsWithAll(algorithm, tuning), most = mostPerPeer(tuning.ranks);
  if (needs <= most) return {};
  return Status::error(Code::InvalidUsage, "algorithm '", algorithm.name, "' needs ", needs,
                       " arrival slots from one rank to another on nodes as uneven as these, and a "
                       "communicator of ",
                       tuning.ranks, " ranks has at most ", most, "; fix: choose another");
}

}  // namespace weft::plan
