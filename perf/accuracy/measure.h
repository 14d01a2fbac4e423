// SPDX-License-Identifier: Apache-2.0
// The ranks of one job: they visit the points of a sweep, round after round, until their time is
// over.
#pragma once

#include <string>

#include "perf/accuracy/point.h"
#include "perf/accuracy/world.h"

namespace weft::accuracy {

struct Task {
  Sweep sweep;
  double seconds = 0;
  bool all = false;  // also forms that are never chosen
  // Calls that are not forced run what they have found out (plan/trial.h), not what the model chooses.
  bool trials = false;
};

// This process is a rank, as weftCommInitFromEnv finds it. Rank 0 gives what was measured, the
// others nothing. Throws std::exception.
World measureAsRank(const Task& task);

}  // namespace weft::accuracy
