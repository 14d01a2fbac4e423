// SPDX-License-Identifier: Apache-2.0
// What a run of weft-train should be, by plain libtorch: one process, a model of torch::nn, the
// whole global batch in one backward pass, clip_grad_norm_, and torch::optim's AdamW or SGD; LAMB
// and LANS, which libtorch lacks, on whole tensors. From weft-train come the settings, the learning rate of
// each step, the batches and the initial weights.
#pragma once

#include "tests/train/curve.h"
#include "tools/train/options.h"

namespace weft::train {

// Departures from what is right, to see that they are seen.
struct Departure {
  double epsilon = 1e-8;
  bool biasCorrection = true;  // LAMB
  bool trust = true;           // LAMB's ratio; without it, it is AdamW
  bool decayAll = false;
  bool normalized = true;  // LANS's gradients
  bool nesterov = true;    // LANS
};

// Losses and norms of the run of options.ranks ranks, 1 if 0.
Curve serialCurve(const Options& options, const Departure& departure = {});

}  // namespace weft::train
