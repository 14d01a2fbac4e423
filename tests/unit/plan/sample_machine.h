// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/tuning.h"

namespace weft::plan {

// A machine as lib/tune measures them: 2 MiB of second-level cache, fast cores.
inline tune::Machine sampleMachine() {
  return {.cacheBytes = 2 << 20,
          .exchangeNs = 130,
          .messageNs = 20,
          .handOverNs = 680,
          .copyNear = 42,
          .copyFar = 14,
          .streamFar = 19,
          .streamMin = 4 << 20,
          .foldNear = 68,
          .putAcross = 14,
          .takeAcross = 9,
          .cmaCallNs = 750,
          .cmaNear = 24,
          .cmaFar = 11};
}

inline CostParameters sampleCosts(std::uint32_t cores = 2) {
  return {.machine = sampleMachine(),
          .cores = cores,
          .arenaBytes = 1 << 20,
          .stagingBytes = 256 << 10,
          .between = {}};
}

// A call to plan there.
inline Call callOf(schedule::Collective collective, std::uint64_t count) {
  Call call;
  call.collective = collective;
  call.type = reduce::DType::F32;
  call.count = count;
  return call;
}

}  // namespace weft::plan
