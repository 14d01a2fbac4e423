// SPDX-License-Identifier: Apache-2.0
#include "plan/model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "plan/memory_costs.h"
#include "plan/plan.h"
#include "plan/staging_map.h"
#include "transports/window.h"

namespace weft::plan {
namespace {

constexpr double kNever = 1e14;  // ns, of what is not permitted, or cannot be

// CMA copies of shared buffers are made in tiles.
double tilesOf(double bytes) { return std::ceil(bytes / kTileBytes); }

// How often a rank waits for others after it has sent to them, and at the end others for it.
struct Rounds {
  double count = 0;
  bool sent = false;
  void end() { count += std::exchange(sent, false); }
};

// One rank's part of one call.
struct Work {
  double ns = 0;       // on its core
  double further = 0;  // of that, because peers are of other NUMA nodes
  double rounds = 0;
};

// What passes between one node and the others.
struct Traffic {
  double sent = 0, received = 0;  // bytes
  double messages = 0;            // that the busiest rank sends, or gets
  double rounds = 0;              // in which somebody else waits for such a message
};

class Model {
 public:
  Model(const schedule::Schedule& schedule, const Call& call, const CostParameters& costs,
        Reach reach)
      : schedule_(schedule),
        costs_(costs),
        reach_(reach),
        machine_(costs.machine),
        layout_(schedule, call, {regionBytes(), costs.stagingBytes, slotsPerRegion()}) {
    share_ = shareOf(schedule.ranks, costs);
    across_ = acrossOf(schedule.ranks, costs);
    footprint_ = crowded(share_ * static_cast<double>(layout_.bufferBytes()), costs);
    user_ = MemoryCosts(machine_, footprint_, across_);
    tmp_ = MemoryCosts(machine_, crowded(share_ * stagingBytes(), costs), across_);
    near_ = MemoryCosts(machine_, 0, across_);
    streams_ = layout_.bufferBytes() >= streamMin(schedule.ranks, costs);
    fits_ = slotsPerRegion() * layout_.stride() <= regionBytes();
  }

  // Staged bytes are read where they lie near.
  FarBytes farBytes(std::uint32_t rank) {
    FarBytes far;
    const schedule::Program& all = program(rank);
    const auto read = [&](schedule::Slot slot, double bytes) {
      if (slot.owner != schedule::kMine && costs_.isFar(rank, slot.owner)) far.read += bytes;
    };
    for (const schedule::Op& op : all.ops) {
      const double bytes = bytesOf(op);
      if (op.kind == schedule::OpKind::Put && costs_.isFar(rank, op.peer)) far.written += bytes;
      if (op.kind == schedule::OpKind::Copy) read(op.src, bytes);
      for (std::uint32_t k = 0; k < op.operands; ++k)
        read(all.operands[op.firstOperand + k], bytes);
    }
    return far;
  }

  double total() {
    if (!fits_) return kNever;
    const Work root = workOf(schedule_.root);
    const Work other = otherWork(root);
    const double rounds = std::max({root.rounds, other.rounds, hops()});
    const double core = coreNs(root.ns, other.ns);
    const double inside = rounds * roundNs(schedule_.ranks, costs_);
    return costs_.between ? inside + betweenNs(*costs_.between, core) : inside + core;
  }

 private:
  // Each is made once.
  const schedule::Program& program(std::uint32_t rank) {
    const auto [known, isNew] = programs_.try_emplace(rank);
    if (isNew) known->second = schedule_.program(rank);
    return known->second;
  }

  // As BindTarget says.
  std::uint64_t regionBytes() const {
    return costs_.arenaBytes / schedule_.ranks / transport::kLine * transport::kLine;
  }

  std::uint32_t slotsPerRegion() {
    std::uint32_t slots = 0;
    for (const std::uint32_t rank : schedule_.typical)
      slots = std::max(slots, StagingMap::mostOf(schedule_, program(rank)).slots);
    return slots;
  }

  double hops() const { return schedule_.ranks > 1 ? schedule_.hops : 0; }

  // Ranks work side by side, but of a rooted call's one segment: there the root and the others work
  // one after the other.
  double coreNs(double root, double other) const {
    const double busiest = std::max(root + (share_ - 1) * other, share_ * other);
    if (!schedule::isRooted(schedule_.collective) || schedule_.shared) return busiest;
    const double segments = static_cast<double>(layout_.segments());
    const double first = root + std::min<double>(share_, schedule_.ranks - 1) * other;
    return first / segments + busiest * (segments - 1) / segments;
  }

  Work workOf(std::uint32_t rank) {
    const schedule::Program& ops = program(rank);
    findWriters(rank, ops);
    Work work;
    Rounds rounds{.sent = schedule_.ranks > 1};  // who waits first waits for who sends first
    bool fetches = false;
    for (const schedule::Op& op : ops.ops) {
      const double further = furtherNs(op, ops);
      work.ns += priceOf(op, ops) + further;
      work.further += further;
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

  // Who of them is far, and, by Tmp slot, whether who writes it is.
  void findWriters(std::uint32_t rank, const schedule::Program& program) {
    rank_ = rank;
    farWrites_.clear();
    if (costs_.memoryNodes.empty()) return;
    farWrites_.resize(schedule_.tmpChunks, false);
    for (const schedule::Op& op : program.ops)
      for (std::uint32_t j = 0; op.kind == schedule::OpKind::Wait && j < op.chunks; ++j)
        if (op.dst.buf == schedule::Buf::Tmp)
          farWrites_[op.dst.index + j] = costs_.isFar(rank, op.peer);
  }

  // What an op costs more because its bytes cross from one NUMA node to another.
  double furtherNs(const schedule::Op& op, const schedule::Program& program) const {
    if (costs_.memoryNodes.empty()) return 0;
    const double bytes = bytesOf(op);
    double ns = 0;
    if (op.kind == schedule::OpKind::Put && costs_.isFar(rank_, op.peer))
      ns += bytes * (op.dst.buf == schedule::Buf::Tmp ? tmp_ : user_).furtherPut;
    if (op.kind == schedule::OpKind::Put || op.kind == schedule::OpKind::Copy)
      ns += furtherTakeNs(op.src, bytes);
    for (std::uint32_t k = 0; k < op.operands; ++k)
      ns += furtherTakeNs(program.operands[op.firstOperand + k], bytes);
    return ns;
  }
  double furtherTakeNs(schedule::Slot slot, double bytes) const {
    if (slot.buf == schedule::Buf::Tmp)
      return farWrites_[slot.index] ? bytes * tmp_.furtherTake : 0;
    const bool isFar = slot.owner != schedule::kMine && costs_.isFar(rank_, slot.owner);
    return isFar ? bytes * user_.furtherTake : 0;
  }

  // The root's node sends most, and all alike where there is no root. Segments overlap the work of
  // cores and rails.
  double betweenNs(const Between& between, double core) {
    const Traffic traffic = trafficOf(between);
    const double wire = std::max(traffic.sent, traffic.received) / between.bytesPerNs;
    const double segments = static_cast<double>(layout_.segments());
    return traffic.rounds * between.latencyNs + segments * traffic.messages * between.messageNs +
           std::max(core, wire) + std::min(core, wire) / segments;
  }

  // The first of the root's node and the last stand for those between them.
  Traffic trafficOf(const Between& between) {
    std::vector<std::uint32_t> others;
    for (std::uint32_t r = 0; r < schedule_.ranks; ++r)
      if (r != schedule_.root && between.nodes[r] == between.nodes[schedule_.root])
        others.push_back(r);
    Traffic traffic;
    follow(between, schedule_.root, 1, &traffic);
    if (others.empty()) return traffic;
    const double share = static_cast<double>(others.size()) / 2;
    follow(between, others.front(), share, &traffic);
    follow(between, others.back(), share, &traffic);
    return traffic;
  }

  // What so many ranks like this one exchange, and the messages of one of them.
  void follow(const Between& between, std::uint32_t rank, double ranks, Traffic* traffic) {
    double sent = 0, received = 0;
    Rounds rounds;
    for (const schedule::Op& op : program(rank).ops) {
      if (op.kind == schedule::OpKind::Wait) rounds.end();
      if (!op.hasPeer() || between.nodes[op.peer] == between.nodes[rank]) continue;
      const bool puts = op.kind == schedule::OpKind::Put;
      rounds.sent = rounds.sent || puts;
      (puts ? sent : received) += messagesOf(op);
      (puts ? traffic->sent : traffic->received) += ranks * bytesOf(op);
    }
    rounds.end();
    traffic->messages = std::max({traffic->messages, sent, received});
    traffic->rounds = std::max({traffic->rounds, rounds.count, sent + received > 0 ? hops() : 0});
  }

  // Blocks of several segments travel one by one.
  double messagesOf(const schedule::Op& op) const {
    return layout_.isOnePiece(op.span()) ? 1 : op.chunks;
  }

  double priceOf(const schedule::Op& op, const schedule::Program& program) const {
    switch (op.kind) {
      case schedule::OpKind::Put:
        return putNs(op);
      case schedule::OpKind::Reduce:
        return reduceNs(op, program);
      case schedule::OpKind::Copy:
        return loadNs(op.src, bytesOf(op)) + storeNs(op.dst, bytesOf(op));
      default:
        return 0;  // a Finish goes along with its sum
    }
  }

  double putNs(const schedule::Op& op) const {
    const double bytes = bytesOf(op);
    if (op.isSignal()) return machine_.messageNs;
    const double flags = machine_.messageNs * static_cast<double>(layout_.segments());
    // What was just made is stored once more, from the nearest cache; the flag waits for the lines.
    if (schedule_.shared && reach_ == Reach::Cma)
      return flags + cmaNs(machine_.cmaPut, bytes, tilesOf(bytes)) -
             bytes * (user_.load - near_.load);
    if (schedule_.shared)
      return flags + machine_.exchangeNs * across_ +
             bytes * (near_.load + (streams_ ? user_.stream : user_.put));
    if (op.dst.buf != schedule::Buf::Out) {
      // What does not travel with its flag is fetched after it.
      const double fetch =
          bytes > static_cast<double>(transport::kInlineBytes) ? machine_.exchangeNs * across_ : 0;
      return flags + fetch + loadNs(op.src, bytes) + bytes * tmp_.put;
    }
    if (costs_.oneProcess) return flags + loadNs(op.src, bytes) + bytes * user_.put;
    return flags + cmaNs(machine_.cmaPut, bytes, static_cast<double>(layout_.segments()));
  }

  double reduceNs(const schedule::Op& op, const schedule::Program& program) const {
    const double bytes = bytesOf(op);
    const double add = std::max(0.0, 1 / machine_.foldNear - near_.load);
    double ns = storeNs(op.dst, bytes);
    for (std::uint32_t k = 0; k < op.operands; ++k)
      ns += bytes * add + loadNs(program.operands[op.firstOperand + k], bytes);
    return ns;
  }

  double loadNs(schedule::Slot slot, double bytes) const {
    if (slot.buf == schedule::Buf::Tmp) return bytes * tmp_.take;
    if (slot.owner == schedule::kMine) return bytes * user_.load;
    if (reach_ == Reach::Mapped) return bytes * user_.take;
    // Into a tile, which is in the nearest cache then.
    return cmaNs(machine_.cmaTake, bytes, tilesOf(bytes)) +
           bytes * (near_.store + near_.load - user_.store);
  }

  double storeNs(schedule::Slot slot, double bytes) const {
    if (slot.buf == schedule::Buf::Tmp) return bytes * tmp_.store;
    return bytes * (streams_ ? user_.stream : user_.store);
  }

  // A copy into a peer's memory, or out of it, in so many calls.
  double cmaNs(const tune::Curve& curve, double bytes, double calls) const {
    if (machine_.cmaCallNs <= 0) return kNever;
    return calls * machine_.cmaCallNs + bytes * curve.nsPerByte(footprint_);
  }

  // Of all Tmp slots that a rank reads and writes: the lanes in flight, here and at its peers.
  double stagingBytes() const {
    const auto lanes = std::min<std::uint64_t>(layout_.segments(), transport::kMaxLanes);
    return 2 * static_cast<double>(lanes * layout_.stride() * schedule_.tmpChunks);
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

  const schedule::Schedule& schedule_;
  const CostParameters& costs_;
  const Reach reach_;
  const tune::Machine& machine_;
  std::map<std::uint32_t, schedule::Program> programs_;
  std::uint32_t rank_ = 0;  // whose work is looked at
  std::vector<bool> farWrites_;
  const ByteLayout layout_;
  double share_ = 1;      // ranks of a core
  double across_ = 1;     // how many of a rank's peers are on another one
  double footprint_ = 0;  // of the buffers of a core's ranks
  MemoryCosts user_, tmp_, near_;
  bool streams_ = false;
  bool fits_ = true;  // into staging memory
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

std::uint64_t streamMin(std::uint32_t ranks, const CostParameters& costs) {
  const auto footprint = static_cast<double>(tune::streamFootprint(costs.machine));
  return static_cast<std::uint64_t>(footprint / crowdOf(costs) / shareOf(ranks, costs));
}

double estimateNs(const schedule::Schedule& schedule, const Call& call, const CostParameters& costs,
                  Reach reach) {
  return Model(schedule, call, costs, reach).total();
}

FarBytes farBytesOf(const schedule::Schedule& schedule, const Call& call,
                    const CostParameters& costs, std::uint32_t rank) {
  if (costs.memoryNodes.empty()) return {};
  return Model(schedule, call, costs, Reach::Mapped).farBytes(rank);
}

}  // namespace weft::plan
