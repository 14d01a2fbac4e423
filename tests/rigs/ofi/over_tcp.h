// SPDX-License-Identifier: Apache-2.0
// Ranks as processes, for the programs that measure libfabric's wire.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>

#include "world.h"

namespace weft::ofi {

// The exit code; what has gone wrong is printed.
inline int runOverTcp(std::uint32_t ranks, const std::function<void(transport::Rank&)>& body) {
  int failures = 0;
  const auto run = [&](transport::Rank& rank) {
    body(rank);
    std::fflush(stdout);
  };
  for (const transport::Outcome& outcome :
       transport::runRanks({.name = "tcp", .processes = true}, ranks, run))
    if (!outcome.failure.empty() || outcome.signal != 0) {
      std::fprintf(stderr, "%s (signal %d)\n", outcome.failure.c_str(), outcome.signal);
      ++failures;
    }
  return failures == 0 ? 0 : 1;
}

}  // namespace weft::ofi
