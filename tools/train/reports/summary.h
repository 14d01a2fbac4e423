// SPDX-License-Identifier: Apache-2.0
// The figures of a whole run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/train/reports/run_record.h"

namespace weft::train {

// An option of the command line.
struct Setting {
  std::string name;  // "--lr"
  std::string value;
  bool isGiven = false;  // by the command line or a recipe, else it is the default
};

// What a rank has put away in a file, in a step.
struct OffloadSummary {
  double bytes = 0;
  double readBytes = 0;  // of them; the rest was wanted before it was let go
  double waitMs = 0;
};

// The share of a step in which stages of a pipeline wait for each other, as a mean of the stages.
struct PipelineSummary {
  double idle = 0;           // measured
  double ofSchedule = 0;     // if all passes took equally long, and messages no time
  double ofUnequalRuns = 0;  // if messages took no time, and passes what they do in the mean
};

// Of the batches of rank 0, the first one apart, of which nothing was ahead.
struct LoadSummary {
  double ms = 0;       // a step, that reading and preparing them took threads beside it
  double waitMs = 0;   // of it, what the step waited for
  double firstMs = 0;  // that the first one was waited for

  // The share that took no step longer.
  double hidden() const { return ms > 0 ? 1 - std::min(waitMs / ms, 1.0) : 1; }
};

// "0.412 ms a step, 99.8 % of it beside the steps, which waited 0.001 ms; 51 ms for the first one"
std::string loadingInWords(const LoadSummary& loading);

struct Summary {
  int ranks = 1;
  int hosts = 1;
  int threads = 1;
  int64_t steps = 0;
  double firstLoss = 0;
  double lastLoss = 0;            // mean of the last tenth of the steps
  double sequencesPerSecond = 0;  // of all ranks together, from the median step
  double tokensPerSecond = 0;
  double teraflops = 0;                    // per second, of all ranks together
  std::optional<double> utilization = {};  // of the peak, if that was told
  double stepMs = 0;
  double exposedMs = 0;
  std::optional<PipelineSummary> pipeline = {};
  double wireBytes = 0;          // that a rank moves in a step, for each parameter
  double memoryBytes = 0;        // of the shard of rank 0: weights, gradients and state
  double peakResidentBytes = 0;  // of rank 0's process
  std::optional<OffloadSummary> offload = {};
  LoadSummary loading;
  double elapsedSeconds = 0;
  double parameters = 0;
  std::optional<uint64_t> weights = {};       // fingerprint; of a run that failed none
  std::optional<Evaluation> validation = {};  // the last one
  std::optional<LossScaling> scaling = {};    // of the last step
  std::string failure = {};                   // why the run ended before its last step, or empty
};

}  // namespace weft::train
