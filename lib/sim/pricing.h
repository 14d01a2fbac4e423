// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/memory_costs.h"
#include "plan/model.h"
#include "plan/plan.h"
#include "sim/groups.h"
#include "sim/job.h"
#include "sim/network.h"

namespace weft::sim {

// What an op costs its rank's core, and its node's memory.
struct Price {
  double fixedNs = 0;
  double nsPerByte = 0;
  double memoryPerByte = 0;  // bytes read and written past the caches
  friend bool operator==(const Price&, const Price&) = default;
};

// Prices the ops of one rank's plan by the machine's numbers, as plan/model.h does for schedules.
class Pricing {
 public:
  // `rank`: of the network; the plan and the costs number the members of its group. `messageNs`: of a
  // message on a link. All outlive it.
  Pricing(const plan::Plan& plan, std::uint32_t rank, const Job& job, const Network& network,
          double messageNs);

  Price of(const plan::BoundOp& op) const;

 private:
  std::uint64_t bufferBytes() const;
  std::uint64_t stagingBytes() const;
  Price message(const plan::BoundOp& op) const;
  Price messageInMemory(const plan::BoundOp& op) const;
  Price computed(const plan::BoundOp& op) const;
  double loadAllNs(const plan::BoundOp& op) const;
  double loadNs(const plan::Place& place) const;
  double storeNs(const plan::BoundOp& op, double loadNs) const;
  double putNs() const;
  double crossingNs(std::uint32_t peer) const;

  const plan::Plan& plan_;
  const std::uint32_t rank_;
  const Groups& groups_;
  const std::uint32_t member_;
  const plan::CostParameters& costs_;
  const tune::Machine& machine_;
  const Network& network_;
  const double messageNs_;
  const bool copies_;  // peers' buffers are reached by CMA
  const bool resultsAreRead_;
  double across_ = 1;
  plan::MemoryCosts user_, staged_, near_;
  double footprint_ = 0;
  bool pastCaches_ = false;
};

}  // namespace weft::sim
