// SPDX-License-Identifier: Apache-2.0
#include "tests/verify/job.h"

#include <algorithm>

#include "base/text.h"

namespace weft::verify {

bool PlannedCall::isRefused() const {
  return std::ranges::find(unwilling, true) != unwilling.end();
}

Lanes::Lanes(const Job& job) : job_(job) {
  std::uint32_t invocation = 0;
  for (std::uint32_t c = 0; c < job.calls.size(); ++c) {
    firstOf_.push_back(invocation);
    const plan::Plan& plan = job.calls[c].plan(0);
    for (std::uint64_t s = 0; s < plan.segments; ++s, ++invocation)
      for (std::uint32_t r = 0; r < ranks(); ++r)
        lanes_.push_back({c, s * job.calls[c].plan(r).segmentBytes, invocation, r});
  }
  firstOf_.push_back(invocation);
}

std::uint32_t Lanes::length(std::uint32_t lane) const {
  const plan::Plan& plan = planOf(lane);
  const PlannedCall& call = callOf(lane);
  if (call.isRefused()) return call.unwilling[lanes_[lane].rank] ? plan.tells : plan.opening;
  return static_cast<std::uint32_t>(plan.ops.size());
}

std::string Lanes::where(std::uint32_t lane, std::uint32_t op) const {
  const Lane& l = lanes_[lane];
  const plan::Plan& plan = planOf(lane);
  const char* kind = op < plan.ops.size() ? plan::nameOf(plan.ops[op].kind) : "its end";
  return text(plan.algorithm, ", ", ranks(), " ranks, call ", l.call, ", segment ",
              l.invocation - firstOf_[l.call], ", rank ", l.rank, ", op ", op, " (", kind, ")");
}

Status Lanes::violation(std::uint32_t lane, std::uint32_t op, const std::string& what) const {
  return Status::error(Code::InternalError, text(where(lane, op), ": ", what));
}

}  // namespace weft::verify
