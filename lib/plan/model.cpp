// SPDX-License-Identifier: Apache-2.0
#include "plan/model.h"

#include <algorithm>

#include "plan/link_times.h"
#include "plan/memory_costs.h"
#include "plan/op_prices.h"
#include "plan/walk.h"

namespace weft::plan {
namespace {

// One rank's part of one call.
struct Work {
  double ns = 0;       // on its core
  double further = 0;  // of that, because peers are of other NUMA nodes
  double kernel = 0;   // of that, in the kernel, writing to peers' processes
  double rounds = 0;
};

class Model {
 public:
  Model(const schedule::Schedule& schedule, const Call& call, const CostParameters& costs,
        Reach reach)
      : schedule_(schedule), costs_(costs), prices_(schedule, call, costs, reach) {}

  double total() {
    if (!prices_.fits()) return kNever;
    const bool isRooted = schedule::isRooted(schedule_.collective);
    if (costs_.hasLinks() && Walk::isShort(prices_)) return Walk(prices_).ns();
    if (costs_.hasLinks() && !isRooted) return LinkTimes(prices_).alikeNs();
    const Work root = workOf(schedule_.root);
    const Work other = otherWork(root);
    const double core = std::max(coreNs(root.ns, other.ns), queueNs(other));
    const double rounds = std::max({root.rounds, other.rounds, prices_.hops()});
    const double round = roundNs(schedule_.ranks, costs_) - costs_.receiptNs();
    const double meeting = costs_.cables ? 0 : rounds * round;
    return meeting + (costs_.hasLinks() ? LinkTimes(prices_).rootedNs(core) : core);
  }

 private:
  // Ranks work side by side, but of a rooted call's one segment: there the root and the others work
  // one after the other.
  double coreNs(double root, double other) const {
    const double busiest = std::max(root + (prices_.share() - 1) * other, prices_.share() * other);
    if (!schedule::isRooted(schedule_.collective) || schedule_.shared) return busiest;
    const double segments = prices_.segments();
    const double first = root + std::min<double>(prices_.share(), schedule_.ranks - 1) * other;
    return first / segments + busiest * (segments - 1) / segments;
  }

  // Who writes to one process by the kernel waits for each other, as long as its buffer is too
  // small to hold huge pages (docs/performance.md).
  double queueNs(const Work& other) const {
    constexpr double kHugePage = 2 << 20;
    const bool isRooted = schedule::isRooted(schedule_.collective);
    if (!isRooted || prices_.bufferBytes() >= 2 * kHugePage) return 0;
    return (schedule_.ranks - 1) * other.kernel;
  }

  Work workOf(std::uint32_t rank) {
    const schedule::Program& ops = prices_.look(rank);
    Work work;
    double byTeam = 0;
    Rounds rounds{.sent = schedule_.ranks > 1};  // who waits first waits for who sends first
    std::uint32_t fetches = 0;
    for (const schedule::Op& op : ops.ops) {
      const double further = prices_.furtherNs(op, ops);
      const double ns = prices_.ns(op, ops) + further;
      work.ns += ns;
      byTeam += prices_.byTeamNs(ns);
      work.further += further;
      work.kernel += prices_.kernelNs(op, ops);
      if (op.kind == schedule::OpKind::Copy && op.src.owner != schedule::kMine) ++fetches;
      if (op.kind == schedule::OpKind::Wait) rounds.end();
      if (op.kind == schedule::OpKind::Put) rounds.sent = true;
    }
    if (work.ns >= kWorthSharing * costs_.team.wakeNs)
      work.ns = std::min(work.ns, byTeam + costs_.team.wakeNs);
    // A copy waits for its first line; a sum has other operands to begin with.
    work.ns += fetches * costs_.machine.exchangeNs;
    rounds.end();
    work.rounds = rounds.count;
    return work;
  }

  // Of the rank after the root; if more crosses to and from the first rank of another NUMA node, with
  // that.
  Work otherWork(const Work& root) {
    if (schedule_.ranks == 1) return root;
    Work other = workOf((schedule_.root + 1) % schedule_.ranks);
    for (std::uint32_t r = 0; r < costs_.memoryNodes.size(); ++r) {
      if (!costs_.isFar(schedule_.root, r)) continue;
      other.ns += std::max(0.0, workOf(r).further - other.further);
      break;
    }
    return other;
  }

  const schedule::Schedule& schedule_;
  const CostParameters& costs_;
  OpPrices prices_;
};

}  // namespace

// All ranks of a core take their turn in each round, some more than once, because those of other
// cores are half a rotation behind. Measured up to 4 ranks a core, whose rotations are taken for more.
double roundNs(std::uint32_t ranks, const CostParameters& costs) {
  const tune::Machine& machine = costs.machine;
  const double share = shareOf(ranks, costs);
  if (share <= 1) return machine.exchangeNs;
  constexpr double kMostRotations = 2.5;
  const double rotations = costs.cores > 1 ? std::min((1 + share) / 2, kMostRotations) : 1;
  return machine.exchangeNs + rotations * share * machine.handOverNs;
}

std::uint64_t streamMin(std::uint32_t ranks, const CostParameters& costs) {
  const auto footprint = static_cast<double>(tune::streamFootprint(costs.machine));
  return static_cast<std::uint64_t>(footprint / crowdOf(ranks, costs) / shareOf(ranks, costs));
}

double estimateNs(const schedule::Schedule& schedule, const Call& call, const CostParameters& costs,
                  Reach reach) {
  return Model(schedule, call, costs, reach).total();
}

FarBytes farBytesOf(const schedule::Schedule& schedule, const Call& call,
                    const CostParameters& costs, std::uint32_t rank) {
  if (costs.memoryNodes.empty()) return {};
  return OpPrices(schedule, call, costs, Reach::Mapped).farBytes(rank);
}

}  // namespace weft::plan
