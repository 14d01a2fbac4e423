// SPDX-License-Identifier: Apache-2.0
// Which calls a bucket makes in a step, in which order: for those who make them, and for those who
// only want to know.
#pragma once

#include <cstdint>

#include "plan/call.h"
#include "shard/levels.h"

namespace weft::shard {

// A call whose sums, or whose block, an epilogue makes.
inline plan::Call epilogueCall(schedule::Collective collective, reduce::DType type,
                               std::uint64_t count) {
  plan::Call call;
  call.collective = collective;
  call.type = type;
  call.op = reduce::RedOp::Epilogue;
  call.count = count;
  return call;
}

inline plan::Call gatherCall(reduce::DType type, std::uint64_t count) {
  plan::Call call;
  call.collective = schedule::Collective::AllGather;
  call.type = type;
  call.count = count;
  return call;
}

// Does a micro-step move gradients at all? Whole ones only the last one does. (Reproducible steps:
// micro_step.h.)
inline bool movesGradients(const Degrees& degrees, bool boundary) {
  return boundary || degrees.grad > 1;
}

// Down to the ranks that own them, or else no further than to one copy, in fp32 after the first hop:
// body(level, call).
template <class Body>
Status visitReductions(const Levels& levels, std::uint64_t bucketElements, reduce::DType wire,
                       bool toOwners, Body&& body) {
  for (const Level level : kAllLevels) {
    if (levels.size(level) == 1 || (level > Level::Grad && !toOwners)) continue;
    bucketElements /= levels.size(level);
    const bool sums = level == Level::Replica;
    WEFT_TRY(body(level, epilogueCall(sums ? schedule::Collective::AllReduce
                                           : schedule::Collective::ReduceScatter,
                                      wire, bucketElements)));
    wire = reduce::DType::F32;
  }
  return {};
}

// Back up to those that keep them, after the step, which is an epilogue of the first: body(level,
// call, steps). Whether there was any.
template <class Body>
Status visitUpdates(const Levels& levels, std::uint64_t bucketElements, reduce::DType type,
                    bool* any, Body&& body) {
  *any = false;
  for (const Level level : {Level::State, Level::Grad}) {
    if (levels.size(level) == 1) continue;
    const std::uint64_t count = levels.partOf(0, bucketElements, level).elements;
    const bool steps = !*any;
    *any = true;
    WEFT_TRY(body(level,
                  steps ? epilogueCall(schedule::Collective::AllGather, type, count)
                        : gatherCall(type, count),
                  steps));
  }
  return {};
}

}  // namespace weft::shard
