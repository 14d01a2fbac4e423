// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/bind.h"
#include "plan/call.h"
#include "plan/plan.h"
#include "schedule/registry.h"

namespace weft::verify {

// Does it raise an arrival?
inline bool isPut(const plan::BoundOp& op) {
  return op.kind <= plan::BoundOp::Kind::Signal && op.kind != plan::BoundOp::Kind::Store;
}

// A call as all ranks make it.
struct PlannedCall {
  plan::Call call;
  std::vector<const plan::Plan*> plans;                 // by rank
  schedule::SumOrder order = schedule::SumOrder::None;  // that its sums promise
  std::vector<bool> inPlace = {};                       // by rank; empty: nobody
  std::vector<bool> unwilling = {};  // of an opened plan, by rank: whose buffers are not shared
  bool withoutUnusedBuffer = false;  // RedOp::Epilogue: no Out (reduce-scatter), no In (all-gather)

  const plan::Plan& plan(std::uint32_t rank) const { return *plans[rank]; }
  bool isRefused() const;
  bool isInPlace(std::uint32_t rank) const { return !inPlace.empty() && inPlace[rank]; }
};

// What is proved: calls that ranks make one after another on one communicator.
struct Job {
  plan::BindTarget target;  // as the plans were bound to; `rank` is not used
  std::vector<PlannedCall> calls;
  std::uint32_t lanes = transport::kMaxLanes;  // invocations in flight
  bool credits = true;  // false: ranks put into slots that their peers may still use
};

// One rank's run through one invocation, a *lane* of the engine's.
struct Lane {
  std::uint32_t call = 0;
  std::uint64_t shift = 0;  // of its segment
  std::uint32_t invocation = 0;
  std::uint32_t rank = 0;
};

// The lanes of a job, numbered: invocation * ranks + rank. Behind them, each rank's caller has a
// number, too.
class Lanes {
 public:
  explicit Lanes(const Job& job);

  std::uint32_t ranks() const { return job_.target.ranks; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(lanes_.size()); }
  std::uint32_t laneOf(std::uint32_t invocation, std::uint32_t rank) const {
    return invocation * ranks() + rank;
  }
  std::uint32_t callerOf(std::uint32_t rank) const { return count() + rank; }
  const Lane& operator[](std::uint32_t lane) const { return lanes_[lane]; }

  std::uint32_t firstOf(std::size_t call) const { return firstOf_[call]; }  // invocation
  const PlannedCall& callOf(std::uint32_t lane) const { return job_.calls[lanes_[lane].call]; }
  const plan::Plan& planOf(std::uint32_t lane) const {
    return callOf(lane).plan(lanes_[lane].rank);
  }
  // Ops that the engine runs of it: a refused plan ends in its opening.
  std::uint32_t length(std::uint32_t lane) const;
  // Which of a rank's sets of arrival slots it uses, of its lanes or of its rings.
  std::uint32_t place(std::uint32_t lane) const {
    return lanes_[lane].invocation %
           (planOf(lane).inRing ? job_.target.ring : transport::kMaxLanes);
  }
  // Of the rings' staging memory what its plan uses; null: nothing that there is.
  const transport::Stages* stagesOf(std::uint32_t lane) const {
    return job_.target.ringStages.stagesOf(planOf(lane).stageBytes);
  }
  // How far its place there lies behind the first.
  std::uint64_t stageOf(std::uint32_t lane) const {
    const transport::Stages* const stages = stagesOf(lane);
    return stages != nullptr ? lanes_[lane].invocation % stages->count * stages->bytes : 0;
  }

  // "all-reduce mesh+staged, 8 ranks, call 2, segment 1, rank 3, op 12 (Fold)"
  std::string where(std::uint32_t lane, std::uint32_t op) const;
  Status violation(std::uint32_t lane, std::uint32_t op, const std::string& what) const;

 private:
  const Job& job_;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> firstOf_;  // by call; one more at the end
};

}  // namespace weft::verify
