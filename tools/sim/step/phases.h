// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "plan/call.h"
#include "reduce/reduce.h"
#include "shard/levels.h"
#include "sim/job.h"
#include "tools/sim/step/model.h"
#include "tools/sim/step/page_costs.h"

namespace weft::simulator {

// How a model is trained, in the words of weft-train and of shard.h.
struct StepSettings {
  shard::Degrees degrees;  // of the ranks that hold the same parameters
  std::uint64_t bucketElements = std::uint64_t{4} << 20;
  reduce::DType paramType = reduce::DType::F32, wireType = reduce::DType::F32;
  std::uint32_t accumulate = 1;
  bool overlaps = true;
  std::uint32_t tensor = 1;  // ranks that share each layer, next to each other
  PageCosts pages;           // of a core, for the memory of sharded parameters and gradients
};

// The streams of a rank: who calls, who reduces and updates, who gathers sharded parameters.
enum StepStream : std::uint32_t { kCaller, kWorker, kGatherer };

// A call that the ranks of each group make.
struct StepCall {
  sim::Groups groups;
  plan::Call call;
};

// What each rank does in some steps, as weft's trainer and sharded optimizer do it: buckets are cut
// by shard::Layout, take the hops of shard/hops.h in the order of shard::Readiness, and are gathered
// as train::Residency says.
struct StepPhases {
  std::vector<StepCall> calls;
  std::vector<sim::Phase> phases;
  std::vector<std::uint32_t>
      ends;  // by step: the phase with which the caller knows that it is over
  std::size_t buckets = 0;
  double sentBytes = 0;  // by a rank in a step, where each group moves as little as it can
};

// Of so many steps, and the forward of the one after them, under which the last one's updates run.
// `ranks`: of the job. InvalidArgument: degrees or a tensor group that do not divide them.
Status makePhases(const StepModel& model, const StepSettings& settings, std::uint32_t ranks,
                  std::uint32_t steps, StepPhases* out);

}  // namespace weft::simulator
