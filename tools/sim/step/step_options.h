// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tools/sim/options.h"
#include "tools/sim/step/phases.h"
#include "tools/sim/step/predict_step.h"
#include "tools/sim/step/published.h"

namespace weft::simulator {

// The command line of weft-sim step.
struct StepOptions {
  Place place;
  std::vector<std::uint32_t> nodes;  // a row for each; empty: as the file says
  std::string model;
  ComputeTime compute;  // of a published model
  double updateNs = 0;  // of its optimizer, for an element
  std::string shard = "none";
  StepSettings settings;  // but for the degrees, which follow from the number of ranks
  StepRun run;
  double batch = 1;  // sequences of a rank in a micro-step
  std::string json, trace;
};

// Or the exit code with which the program ends at once.
std::variant<StepOptions, int> parseStepOptions(int argc, char** argv);

// --shard for so many ranks, on nodes of so many. Throws std::invalid_argument.
shard::Degrees degreesOf(const std::string& shard, std::uint32_t ranks, std::uint32_t localRanks);

}  // namespace weft::simulator
