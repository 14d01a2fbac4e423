// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "shard/layout.h"
#include "shard/reducer.h"

namespace weft::shard {

struct MicroStepArgs {
  bool boundary = true;  // the optimizer steps after this backward
  double learningRate = 1e-3;
  double weightDecay = 0;
  double clipNorm = 0;           // 0: no clipping
  double lossScale = 1;          // what the loss was multiplied with
  double divisor = 0;            // what the sum of all ranks' gradients is divided by; 0: ranks
  bool skipNonFinite = true;     // no update if a gradient is infinite or NaN
  std::uint32_t microSteps = 0;  // of the whole step; 0: not said
};
Status checkArgs(const MicroStepArgs& args, bool eager);
// What sums of gradients are multiplied with.
double averagingOf(const MicroStepArgs& args, std::uint32_t ranks);

struct StepOutcome {
  double gradientNorm = 0;  // of the averaged gradients, before clipping
  double clip = 1;          // what they were multiplied with
  std::uint64_t nonFinite = 0;
  bool skipped = false;
  int badParameter = -1, badRank = -1;  // the first that was not finite, and who brought it
  int badPart = -1;                     // of the model, where that was
  double exposedSeconds = 0;            // that acquire() and wait() waited since the step before
};

// What each rank says of a step, for all to decide alike.
struct StepReport {
  reduce::ExactSum squares;
  std::uint64_t nonFinite, firstBad;
  std::int32_t badRank;
  std::uint32_t missing;  // a parameter that was not ready, counted from 1
  std::uint64_t args;     // fingerprint of them, and of the number of micro-steps
  Reducer::EarlyBad early;
};
StepReport reportOf(Reducer& reducer, const Mesh& mesh, const MicroStepArgs& args,
                    std::uint64_t microSteps, std::uint32_t missing);

// What the ranks that share a part of the model have come to: the same on each of them, for those
// of the other parts.
struct PartReport {
  reduce::ExactSum squares;
  std::uint64_t nonFinite;
  std::int32_t badParameter, badRank;
  std::uint64_t args;
  std::uint32_t misused;  // 1: its step is called off
};
// `misuse`, if it is not empty afterwards, says what was misused in this part.
PartReport partReportOf(const std::vector<StepReport>& reports, const Layout& layout,
                        std::string* misuse);

// Clip, skip or step: the same on every rank of all parts, from the same reports. Not empty: what
// was misused, and the step is called off.
std::string decideStep(const std::vector<PartReport>& parts, const MicroStepArgs& args,
                       std::uint32_t ranks, StepOutcome* outcome);

}  // namespace weft::shard
