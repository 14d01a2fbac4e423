// SPDX-License-Identifier: Apache-2.0
#include "plan/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/plan.h"
#include "transports/window.h"

namespace weft::plan {
namespace {

// Shares of loads and stores in the extra cost of a far copy: a store first reads its line and
// later writes it back.
constexpr double kLoads = 1.0 / 3, kStores = 2.0 / 3;
// The calibration sees buffers of a cache's size. Far beyond it CMA copies, whose stores read their
// lines from memory first, lose half of their rate: from so many caches on, of a block and of all
// buffers of a core.
constexpr double kFarBlock = 8, kFarBuffers = 64;
// The calibration copies alone. Ranks that reach into each other's memory at once hinder each other
// in the kernel.
constexpr double kCrowd = 1.25;
constexpr double kNever = 1e14;  // ns, of what is not permitted

// CMA copies of shared buffers are made in tiles.
double tilesOf(double bytes) { return std::ceil(bytes / kTileBytes); }

// Ranks of a core.
double shareOf(std::uint32_t ranks, const CostParameters& costs) {
  return std::ceil(static_cast<double>(ranks) / std::max(1u, costs.cores));
}

// How often a rank waits for others after it has sent to them, and at the end others for it.
struct Rounds {
  double count = 0;
  bool sent = false;
  void end() { count += std::exchange(sent, false); }
};

// One rank's part of one call.
struct Work {
  double ns = 0;  // on its core
  double rounds = 0;
};

// What leaves one node.
struct Traffic {
  double bytes = 0;
  double messages = 0;  // of the busiest rank
  double rounds = 0;    // in which somebody else waits for such a message
};

class Model {
 public:
  Model(const schedule::Schedule& schedule, const Call& call, const CostParameters& costs,
        Reach reach)
      : schedule_(schedule),
        costs_(costs),
        reach_(reach),
        machine_(costs.machine),
        layout_(schedule, call, {costs.arenaBytes, costs.stagingBytes, 0}) {
    const double ranks = schedule.ranks;
    share_ = shareOf(schedule.ranks, costs);
    across_ = ranks > 1 ? (ranks - share_) / (ranks - 1) : 0;
    footprint_ = share_ * 2 * static_cast<double>(layout_.totalBytes()) / machine_.cacheBytes;
    far_ = std::clamp(footprint_ - 0.5, 0.0, 1.0);
    streams_ = static_cast<double>(layout_.totalBytes()) >= machine_.streamMin;
  }

  double total() const {
    const Work root = workOf(schedule_.root);
    const Work other = schedule_.ranks > 1 ? workOf((schedule_.root + 1) % schedule_.ranks) : root;
    const double rounds = std::max(root.rounds, other.rounds);
    const double crowd = reach_ == Reach::Cma ? kCrowd : 1;
    const double core = crowd * coreNs(root.ns, other.ns);
    const double inside = rounds * roundNs(schedule_.ranks, costs_);
    return costs_.between ? inside + betweenNs(*costs_.between, core) : inside + core;
  }

 private:
  // Ranks work side by side, but of a rooted call's one segment: there the root and the others work
  // one after the other.
  double coreNs(double root, double other) const {
    const double busiest = std::max(root + (share_ - 1) * other, share_ * other);
    if (!schedule::isRooted(schedule_.collective) || schedule_.shared) return busiest;
    const double segments = static_cast<double>(layout_.segments());
    const double first = root + std::min<double>(share_, schedule_.ranks - 1) * other;
    return first / segments + busiest * (segments - 1) / segments;
  }

  Work workOf(std::uint32_t rank) const {
    const schedule::Program program = schedule_.program(rank);
    Work work;
    Rounds rounds;
    bool fetches = false;
    for (const schedule::Op& op : program.ops) {
      work.ns += priceOf(op, program);
      fetches = fetches || (op.kind == schedule::OpKind::Copy && op.src.owner != schedule::kMine);
      if (op.kind == schedule::OpKind::Wait) rounds.end();
      if (op.kind == schedule::OpKind::Put) rounds.sent = true;
    }
    // A copy waits for its first line; a sum has other operands to begin with.
    if (fetches) work.ns += machine_.exchangeNs;
    rounds.end();
    work.rounds = rounds.count;
    return work;
  }

  // The root's node sends most, and all alike where there is no root. Segments overlap the work of
  // cores and rails.
  double betweenNs(const Between& between, double core) const {
    Traffic traffic;
    for (std::uint32_t r = 0; r < schedule_.ranks; ++r)
      if (between.nodes[r] == between.nodes[schedule_.root]) follow(between, r, &traffic);
    const double wire = traffic.bytes / between.bytesPerNs;
    const double segments = static_cast<double>(layout_.segments());
    return traffic.rounds * between.latencyNs + segments * traffic.messages * between.messageNs +
           std::max(core, wire) + std::min(core, wire) / segments;
  }

  void follow(const Between& between, std::uint32_t rank, Traffic* traffic) const {
    const schedule::Program program = schedule_.program(rank);
    double messages = 0;
    Rounds rounds;
    for (const schedule::Op& op : program.ops) {
      if (op.kind == schedule::OpKind::Wait) rounds.end();
      if (op.kind != schedule::OpKind::Put || between.nodes[op.peer] == between.nodes[rank])
        continue;
      rounds.sent = true;
      ++messages;
      traffic->bytes += bytesOf(op);
    }
    rounds.end();
    traffic->messages = std::max(traffic->messages, messages);
    traffic->rounds = std::max(traffic->rounds, rounds.count);
  }

  double priceOf(const schedule::Op& op, const schedule::Program& program) const {
    switch (op.kind) {
      case schedule::OpKind::Put:
        return putNs(op);
      case schedule::OpKind::Reduce:
        return reduceNs(op, program);
      case schedule::OpKind::Copy:
        return bytesOf(op) / machine_.copyNear + loadNs(op.src, bytesOf(op)) +
               storeNs(op.dst, bytesOf(op));
      default:
        return 0;  // a Finish goes along with its sum
    }
  }

  double putNs(const schedule::Op& op) const {
    const double bytes = bytesOf(op);
    const double copy = bytes / machine_.copyNear;
    if (op.isSignal()) return machine_.messageNs;
    const double flags = machine_.messageNs * static_cast<double>(layout_.segments());
    if (schedule_.shared && reach_ == Reach::Cma) return flags + cmaNs(bytes, tilesOf(bytes));
    if (schedule_.shared)  // what was just made is stored once more, from the nearest cache
      return flags + copy +
             bytes * std::max(crossing(machine_.putAcross), kStores * beyond(farResult()));
    if (op.dst.buf != schedule::Buf::Out) {
      // What does not travel with its flag is fetched after it.
      const double fetch =
          bytes > static_cast<double>(transport::kInlineBytes) ? machine_.exchangeNs * across_ : 0;
      return flags + fetch + copy + loadNs(op.src, bytes) + bytes * crossing(machine_.putAcross);
    }
    if (costs_.oneProcess)
      return flags + copy +
             bytes * std::max(crossing(machine_.putAcross), beyond(machine_.copyFar));
    return flags + cmaNs(bytes, static_cast<double>(layout_.segments()));
  }

  double reduceNs(const schedule::Op& op, const schedule::Program& program) const {
    const double bytes = bytesOf(op);
    double ns = storeNs(op.dst, bytes);
    for (std::uint32_t k = 0; k < op.operands; ++k)
      ns += bytes / machine_.foldNear + loadNs(program.operands[op.firstOperand + k], bytes);
    return ns;
  }

  // Beyond a near copy: what this rank's peers wrote, and user memory that has left the cache.
  double loadNs(schedule::Slot slot, double bytes) const {
    if (slot.buf == schedule::Buf::Tmp) return bytes * crossing(machine_.takeAcross);
    if (slot.owner != schedule::kMine && reach_ == Reach::Cma) return cmaNs(bytes, tilesOf(bytes));
    const double peers = slot.owner != schedule::kMine ? crossing(machine_.takeAcross) : 0;
    return bytes * std::max(peers, kLoads * beyond(machine_.copyFar));
  }

  double storeNs(schedule::Slot slot, double bytes) const {
    return slot.buf == schedule::Buf::Out ? bytes * kStores * beyond(farResult()) : 0;
  }

  // A copy into a peer's memory, or out of it, in so many calls.
  double cmaNs(double bytes, double calls) const {
    if (machine_.cmaCallNs <= 0) return kNever;
    const bool tooFar = footprint_ >= kFarBuffers || bytes >= kFarBlock * machine_.cacheBytes;
    const double byteNs = (1 - far_) / machine_.cmaNear + far_ / machine_.cmaFar * (tooFar ? 2 : 1);
    return calls * machine_.cmaCallNs + bytes * byteNs +
           bytes * (1 - far_) * crossing(machine_.putAcross);
  }

  // In all segments together.
  double bytesOf(const schedule::Op& op) const {
    double bytes = 0;
    for (std::uint32_t j = 0; j < op.chunks; ++j) {
      const double limit = static_cast<double>(layout_.limit(op.shape + j));
      const double most = static_cast<double>(layout_.segments() * layout_.stride());
      bytes += std::min(limit, most);
    }
    return bytes;
  }

  // Extra cost of a byte that comes from, or goes to, another core's cache.
  double crossing(double rate) const { return across_ * (1 / rate - 1 / machine_.copyNear); }
  double beyond(double rate) const {
    return far_ * std::max(0.0, 1 / rate - 1 / machine_.copyNear);
  }
  double farResult() const { return streams_ ? machine_.streamFar : machine_.copyFar; }

  const schedule::Schedule& schedule_;
  const CostParameters& costs_;
  const Reach reach_;
  const tune::Machine& machine_;
  const ByteLayout layout_;
  double share_ = 1;      // ranks of a core
  double across_ = 1;     // how many of a rank's peers are on another one
  double footprint_ = 0;  // of the buffers of a core's ranks, in caches
  double far_ = 0;        // how much of the buffers does not stay in the cache
  bool streams_ = false;
};

}  // namespace

// All ranks of a core take their turn in each round, some more than once, because those of other
// cores are half a rotation behind.
double roundNs(std::uint32_t ranks, const CostParameters& costs) {
  const tune::Machine& machine = costs.machine;
  const double share = shareOf(ranks, costs);
  if (share <= 1) return machine.exchangeNs;
  const double rotations = costs.cores > 1 ? (1 + share) / 2 : 1;
  return machine.exchangeNs + rotations * share * machine.handOverNs;
}

double estimateNs(const schedule::Schedule& schedule, const Call& call, const CostParameters& costs,
                  Reach reach) {
  return Model(schedule, call, costs, reach).total();
}

}  // namespace weft::plan
