// SPDX-License-Identifier: Apache-2.0
#include "plan/arrivals.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/text.h"
#include "schedule/nodes.h"

namespace weft::plan {
namespace {

// Rings need about 2 for each rank.
std::uint32_t mostPerPeer(std::uint32_t ranks) { return 4 * ranks + 16; }

// The most arrivals that one rank raises at another.
std::uint32_t arrivalsOf(const schedule::Program& program, std::uint32_t ranks) {
  std::vector<std::uint32_t> at(ranks, 0);
  for (const schedule::Op& op : program.ops)
    if (op.kind == schedule::OpKind::Put) at[op.peer] += std::max(1u, op.chunks);
  return *std::ranges::max_element(at);
}

// Where nodes differ in size, ranks of the smallest pass on the most, and the first of a node as
// much as any of them.
std::vector<std::uint32_t> typicalOf(const std::vector<std::uint32_t>& nodeOf) {
  const schedule::Nodes nodes(nodeOf);
  std::vector<std::uint32_t> ranks;
  std::vector<bool> seen(nodeOf.size() + 1, false);
  for (std::uint32_t node = 0; node < nodes.count(); ++node) {
    if (seen[nodes.size(node)]) continue;
    seen[nodes.size(node)] = true;
    for (std::uint32_t localRank = 0; localRank < std::min(2u, nodes.size(node)); ++localRank)
      ranks.push_back(nodes.members(node)[localRank]);
  }
  return ranks;
}

// A flat all-reduce never exceeds the reduce-scatter of its name with the all-gather after it.
const schedule::Algorithm* beginningOf(const schedule::Algorithm& algorithm) {
  using enum schedule::Collective;
  if (algorithm.collective != AllReduce || algorithm.levels != schedule::Levels::One)
    return nullptr;
  if (schedule::findAlgorithm(AllGather, algorithm.name) == nullptr) return nullptr;
  return schedule::findAlgorithm(ReduceScatter, algorithm.name);
}

// With a clear-to-send. It is asked of all ranks, which need not be alike.
std::uint32_t ofImported(const Tuning& tuning) {
  std::uint32_t most = 0;
  if (!tuning.imported || tuning.imported->schedule.ranks != tuning.ranks) return most;
  for (std::uint32_t rank = 0; rank < tuning.ranks; ++rank)
    most = std::max(most, arrivalsOf(tuning.imported->schedule.program(rank), tuning.ranks) + 1);
  return most;
}

bool isForLinks(const schedule::Algorithm& algorithm) {
  return algorithm.levels == schedule::Levels::Links;
}

// What algorithms need, one after the other.
class Needs {
 public:
  explicit Needs(const Tuning& tuning)
      : shape_(shapeOf(tuning)), leveled_(hasLevels(tuning)), typical_(typicalOf(tuning.nodes)) {}

  bool fitNodes(const schedule::Algorithm& algorithm) const {
    if (algorithm.levels == schedule::Levels::TwoEven) return shape_.localRanks > 1;
    if (isForLinks(algorithm)) return shape_.links != nullptr;
    return algorithm.levels == schedule::Levels::One || leveled_;
  }
  // With what may come along: the all-gather after a reduce-scatter (a step), and a clear-to-send.
  std::uint32_t of(const schedule::Algorithm& algorithm) {
    const std::uint32_t arrivals = alone(algorithm) + 1;
    if (algorithm.collective != schedule::Collective::ReduceScatter) return arrivals;
    const schedule::Algorithm* gather =
        schedule::findAlgorithm(schedule::Collective::AllGather, algorithm.name);
    return gather == nullptr ? arrivals : arrivals + alone(*gather);
  }

 private:
  std::uint32_t alone(const schedule::Algorithm& algorithm) {
    const auto [known, isNew] = known_.try_emplace(&algorithm, 0);
    if (!isNew) return known->second;
    const schedule::Schedule schedule = algorithm.make(shape_);
    const bool flat = algorithm.levels == schedule::Levels::One;
    for (const std::uint32_t rank : isForLinks(algorithm) ? schedule.typical
                                    : flat                ? std::vector{0u, 1 % shape_.ranks}
                                                          : typical_)
      known->second = std::max(known->second, arrivalsOf(schedule.program(rank), shape_.ranks));
    return known->second;
  }

  const schedule::Shape shape_;
  const bool leveled_;
  const std::vector<std::uint32_t> typical_;
  std::map<const schedule::Algorithm*, std::uint32_t> known_;
};

std::uint32_t ofRegistry(const Tuning& tuning) {
  std::uint32_t most = 0;
  Needs all(tuning);
  const auto fits = [&](std::uint32_t needs) { return needs <= mostPerPeer(tuning.ranks); };
  for (const schedule::Algorithm& algorithm : schedule::algorithms()) {
    // On shared buffers it is never more than the mesh's, and to make one is to make all ranks'.
    if (algorithm.shared || !all.fitNodes(algorithm)) continue;
    const schedule::Algorithm* const begins = beginningOf(algorithm);
    if (begins != nullptr && fits(all.of(*begins))) continue;
    const std::uint32_t needs = all.of(algorithm);
    if (fits(needs) || isForLinks(algorithm)) most = std::max(most, needs);
  }
  return most;
}

// The last answer, as a thread that makes communicators mostly makes many over the same ranks.
struct Answer {
  std::size_t algorithms = 0;
  std::uint32_t ranks = 0;
  std::vector<std::uint32_t> nodes;
  std::uint32_t arrivals = 0;
};

}  // namespace

std::uint32_t arrivalsPerPeer(const Tuning& tuning) {
  thread_local Answer last;
  const std::size_t algorithms = schedule::algorithms().size();
  const bool known = last.algorithms == algorithms && last.ranks == tuning.ranks &&
                     last.nodes == tuning.nodes && tuning.links == nullptr;
  if (!known) {
    const std::uint32_t arrivals = ofRegistry(tuning);
    if (tuning.links != nullptr) return std::max(arrivals, ofImported(tuning));
    last = {algorithms, tuning.ranks, tuning.nodes, arrivals};
  }
  return std::max(last.arrivals, ofImported(tuning));
}

Status checkArrivals(const schedule::Algorithm& algorithm, const Tuning& tuning) {
  const bool uneven = algorithm.levels == schedule::Levels::Two && shapeOf(tuning).localRanks == 1;
  if (!uneven) return {};
  const std::uint32_t needs = Needs(tuning).of(algorithm), most = mostPerPeer(tuning.ranks);
  if (needs <= most) return {};
  return Status::error(Code::InvalidUsage, "algorithm '", algorithm.name, "' needs ", needs,
                       " arrival slots from one rank to another on nodes as uneven as these, and a "
                       "communicator of ",
                       tuning.ranks, " ranks has at most ", most, "; fix: choose another");
}

}  // namespace weft::plan
