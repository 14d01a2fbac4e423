// SPDX-License-Identifier: Apache-2.0
#include "tests/verify/prove.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "tests/verify/machine.h"

namespace weft::verify {
namespace {

// All ranks' engines: which lane may go on, as in Executor::runPlan().
class Run {
 public:
  explicit Run(const Job& job)
      : job_(job),
        lanes_(job),
        machine_(job, lanes_),
        next_(lanes_.count(), 0),
        opened_(lanes_.ranks(), 0),
        completed_(lanes_.ranks(), 0),
        call_(lanes_.ranks(), 0) {}

  Status run() {
    for (std::uint32_t r = 0; r < lanes_.ranks(); ++r) WEFT_TRY(machine_.enter(r, 0));
    for (moved_ = true; moved_;) {
      moved_ = false;
      for (std::uint32_t r = 0; r < lanes_.ranks(); ++r) WEFT_TRY(advance(r));
    }
    for (std::uint32_t r = 0; r < lanes_.ranks(); ++r)
      if (call_[r] < job_.calls.size()) return stuck(r);
    return machine_.checkEnd();
  }

  std::uint64_t ops() const { return ops_; }

 private:
  // The lanes of one rank that are in flight, then the end of its invocations and calls, in order.
  Status advance(std::uint32_t rank) {
    if (call_[rank] == job_.calls.size()) return {};
    const std::uint32_t end = lanes_.firstOf(call_[rank] + 1);
    const std::uint32_t limit = std::min(end, completed_[rank] + job_.lanes);
    for (std::uint32_t i = completed_[rank]; i < limit; ++i) {
      const std::uint32_t lane = lanes_.laneOf(i, rank);
      if (i == opened_[rank]) machine_.open(lane), ++opened_[rank];
      WEFT_TRY(advanceLane(lane));
    }
    for (; completed_[rank] < opened_[rank]; ++completed_[rank]) {
      const std::uint32_t lane = lanes_.laneOf(completed_[rank], rank);
      if (next_[lane] < lanes_.length(lane)) break;
      machine_.close(lane);
      moved_ = true;
    }
    if (completed_[rank] < end) return {};
    WEFT_TRY(machine_.leave(rank, call_[rank]));
    if (++call_[rank] < job_.calls.size()) WEFT_TRY(machine_.enter(rank, call_[rank]));
    return {};
  }

  Status advanceLane(std::uint32_t lane) {
    for (; next_[lane] < lanes_.length(lane) && mayRun(lane); ++next_[lane]) {
      WEFT_TRY(machine_.run(lane, next_[lane]));
      moved_ = true;
      ++ops_;
    }
    return {};
  }

  bool mayRun(std::uint32_t lane) const {
    const plan::BoundOp& op = lanes_.planOf(lane).ops[next_[lane]];
    if (op.kind == plan::BoundOp::Kind::Wait) return machine_.hasArrived(lane, op);
    return !isPut(op) || op.peer >= lanes_.ranks() || !job_.credits ||
           lanes_[lane].invocation < completed_[op.peer] + lanes_.planOf(lane).depth;
  }

  Status stuck(std::uint32_t rank) const {
    const std::uint32_t lane = lanes_.laneOf(completed_[rank], rank);
    return lanes_.violation(lane, next_[lane], "deadlock");
  }

  const Job& job_;
  const Lanes lanes_;
  Machine machine_;
  std::vector<std::uint32_t> next_;       // by lane: its next op
  std::vector<std::uint32_t> opened_;     // by rank: invocations
  std::vector<std::uint32_t> completed_;  // by rank: invocations, in order
  std::vector<std::uint32_t> call_;       // by rank: the one that it is in
  std::uint64_t ops_ = 0;
  bool moved_ = false;
};

Status mismatch(const PlannedCall& call, std::uint32_t rank, const char* what) {
  return Status::error(Code::InternalError, text(call.plan(0).algorithm, ", ", call.plans.size(),
                                                 " ranks: rank ", rank, "'s plan has ", what));
}

// What the engine takes for granted of the plans of one call.
Status checkPlans(const PlannedCall& call) {
  for (std::uint32_t r = 0; r < call.plans.size(); ++r) {
    const plan::Plan& plan = call.plan(r);
    if (plan.segments != call.plan(0).segments) return mismatch(call, r, "other segments");
    if (plan.fingerprint != call.plan(0).fingerprint) return mismatch(call, r, "another tag");
    if (plan.inRing != call.plan(0).inRing) return mismatch(call, r, "other arrival slots");
    if (plan.stageBytes != call.plan(0).stageBytes)
      return mismatch(call, r, "other room in a ring");
    // Whoever may be ahead of the others must know it, to compare calls with them later.
    if (plan.runsAhead != schedule::isRooted(call.call.collective))
      return mismatch(call, r, "a wrong word on running ahead");
    // Who has refused one lane's opening stays away from all others.
    if (plan.opening != 0 && plan.segments != 1) return mismatch(call, r, "several openings");
    if (plan.opening > plan.ops.size()) return mismatch(call, r, "no such opening");
    if (plan.cmaCopies && (plan.opening == 0 || plan.callsEpilogue))
      return mismatch(call, r, "no buffers to copy by CMA");
  }
  return {};
}

}  // namespace

Status prove(const Job& job, ProofCount* count) {
  for (const PlannedCall& call : job.calls) WEFT_TRY(checkPlans(call));
  Run run(job);
  const Status status = run.run();
  if (count != nullptr) count->proofs += 1, count->ops += run.ops();
  return status;
}

}  // namespace weft::verify
