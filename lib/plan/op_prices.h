// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "plan/call.h"
#include "plan/layout.h"
#include "plan/memory_costs.h"
#include "plan/model.h"
#include "schedule/ir.h"

namespace weft::plan {

inline constexpr double kNever = 1e14;  // ns, of what is not permitted, or cannot be

// What the ops of a schedule cost the cores that do them, in nanoseconds, by the machine's numbers.
class OpPrices {
 public:
  // All of them outlive it.
  OpPrices(const schedule::Schedule& schedule, const Call& call, const CostParameters& costs,
           Reach reach);
  OpPrices(const OpPrices&) = delete;

  const schedule::Schedule& schedule() const { return schedule_; }
  const CostParameters& costs() const { return costs_; }
  // Each is made once.
  const schedule::Program& program(std::uint32_t rank);
  // Whose program the ops of are asked for next: makes it, too.
  const schedule::Program& look(std::uint32_t rank);

  // In all segments together, of the rank that was looked at.
  double ns(const schedule::Op& op, const schedule::Program& program) const;
  // What it costs more because its bytes cross from one NUMA node to another.
  double furtherNs(const schedule::Op& op, const schedule::Program& program) const;
  // What takes one thread `ns` in all segments together, by the threads of the rank.
  double byTeamNs(double ns) const;
  // Of that, what the kernel does to a peer's process.
  double kernelNs(const schedule::Op& op, const schedule::Program& program) const;
  double bytes(const schedule::Op& op) const;
  // Of one segment: blocks of several travel one by one.
  double messages(const schedule::Op& op) const {
    return layout_.isOnePiece(op.span()) ? 1 : op.chunks;
  }
  FarBytes farBytes(std::uint32_t rank);

  double bufferBytes() const { return static_cast<double>(layout_.bufferBytes()); }
  double segments() const { return static_cast<double>(layout_.segments()); }
  double share() const { return share_; }  // ranks of a core
  bool fits() const { return fits_; }      // into staging memory
  double hops() const { return schedule_.ranks > 1 ? schedule_.hops : 0; }

 private:
  std::uint64_t regionBytes() const;
  std::uint32_t slotsPerRegion();
  double stagingBytes();
  std::uint64_t stagedChunks(const schedule::Program& program) const;
  double receiptsNs(const schedule::Op& op) const;
  double putNs(const schedule::Op& op, const schedule::Program& program) const;
  bool isRaise(const schedule::Op& op, const schedule::Program& program) const;
  bool isPublished(const schedule::Op& op) const;
  bool isFetched(const schedule::Op& op) const;
  double reduceNs(const schedule::Op& op, const schedule::Program& program) const;
  double loadNs(schedule::Slot slot, double bytes) const;
  double moveNs(double loadsNs, schedule::Slot to, double bytes) const;
  double furtherTakeNs(schedule::Slot slot, double bytes) const;
  double cmaNs(const tune::Curve& curve, double bytes, double calls) const;

  const schedule::Schedule& schedule_;
  const CostParameters& costs_;
  const Reach reach_;
  const tune::Machine& machine_;
  std::map<std::uint32_t, schedule::Program> programs_;
  std::uint32_t rank_ = 0;       // whose work is looked at
  std::vector<bool> farWrites_;  // by Tmp slot: does it come from another NUMA node?
  const ByteLayout layout_;
  double share_ = 1;
  double across_ = 1;     // how many of a rank's peers are on another core
  double footprint_ = 0;  // of the buffers of a core's ranks
  MemoryCosts user_, tmp_, near_;
  bool streams_ = false;
  bool fits_ = true;
};

}  // namespace weft::plan
