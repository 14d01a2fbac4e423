// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/job.h"
#include "tools/sim/cluster.h"
#include "tools/sim/options.h"
#include "tools/sim/step/phases.h"

namespace weft::simulator {

// How a step is simulated.
struct StepRun {
  bool computesOnCores = false;  // of the ranks, as on hosts
  bool ownBuffers = true;        // of weftMemAlloc, as the sharded optimizer's are
  bool folds = true, exact = false;
  std::string algorithm;  // of all calls; empty: weft chooses
};

// A step in the middle of training.
struct StepRow {
  std::uint32_t nodes = 0, ranks = 0;
  std::size_t buckets = 0, calls = 0;  // calls: that a rank makes in all that was simulated
  double stepNs = 0;
  double computeNs = 0;  // of the slowest rank
  double tensorNs = 0;   // that it waits for its tensor group
  double exposedNs() const { return std::max(stepNs - computeNs - tensorNs, 0.0); }
  double sentBytes = 0;              // by a rank, where each group moves as little as it can
  std::set<std::string> algorithms;  // of its calls, as rank 0 makes them
  std::string tooLarge;              // why there could be no such communicator today
  sim::Result result;                // of several steps
  double seconds = 0;                // that the simulation took
  StepPhases phases;
};

Status predictStep(const Place& place, const Cluster& cluster, const StepModel& model,
                   const StepSettings& settings, const StepRun& run, StepRow* row);

}  // namespace weft::simulator
