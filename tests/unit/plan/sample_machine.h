// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/choose.h"

namespace weft {

// A machine as lib/tune measures them: 2 MiB of second-level cache, fast cores.
inline Machine sampleMachine() {
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
          .kernelCallNs = 750,
          .kernelNear = 24,
          .kernelFar = 11};
}

inline Ground sampleGround(std::uint32_t cores = 2) {
  return {.machine = sampleMachine(),
          .cores = cores,
          .arenaBytes = 1 << 20,
          .landingBytes = 256 << 10,
          .between = {}};
}

// A call to plan there.
inline Call callOf(Collective collective, std::uint64_t count) {
  Call call;
  call.collective = collective;
  call.type = DType::F32;
  call.count = count;
  return call;
}

}  // namespace weft
