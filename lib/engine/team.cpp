// SPDX-License-Identifier: Apache-2.0
#include "engine/team.h"

#include <algorithm>

#include "base/now.h"

namespace weft::engine {

PoolTeam::PoolTeam(std::uint32_t size, const Pool& pool) : Team(size), pool_(pool) {
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    const double start = nowNs();
    run(
        size, [](void*, int) {}, nullptr, true);
    const double ns = nowNs() - start;
    costs_.awakeNs = i == 0 ? ns : std::min(ns, costs_.awakeNs);
  }
  costs_.asleepNs = costs_.awakeNs;
}

void PoolTeam::run(std::uint32_t pieces, Body body, void* arg, bool /*wakes*/) {
  pool_.parallelFor(pool_.context, static_cast<int>(pieces), body, arg);
}

}  // namespace weft::engine
