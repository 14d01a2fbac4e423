// SPDX-License-Identifier: Apache-2.0
// One rank's training step.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/train/adamw.h"
#include "tools/train/flat_layout.h"
#include "tools/train/gpt.h"
#include "tools/train/gradient_reducer.h"
#include "tools/train/host_buffer.h"
#include "tools/train/options.h"
#include "tools/train/sampler.h"
#include "weft/weft.hpp"

namespace weft::train {

struct StepReport {
  int64_t step;         // 0, 1, ...
  double loss;          // mean over all samples of all ranks, in nats per byte
  double gradientNorm;  // of the averaged gradients, before clipping
  double learningRate;
  double seconds;
  double exposedSeconds;  // from the end of this rank's backward until all gradients were averaged
  bool stop;              // rank 0 wanted to stop after this step
};

class Trainer {
 public:
  // Collective: checks that all ranks have the same text and settings, and gives them rank 0's
  // initial weights. `text` and `team` must outlive this.
  Trainer(const Options& options, Communicator& team, std::span<const uint8_t> text);

  // Collective. Throws SharedFailure on every rank if some loss or the norm is not finite.
  StepReport step(bool wantStop);

  size_t parameters() const;
  size_t buckets() const { return layout_.buckets().size(); }
  // Equal on all ranks.
  uint64_t weightsFingerprint();

 private:
  enum Word : size_t { kLoss, kWantStop, kWords };  // what the ranks tell each other in every step
  void shareInitialWeights();
  void accumulateGradients(bool wantStop);
  double meanLoss() const;

  const Options& options_;
  Communicator& team_;
  Sampler sampler_;
  std::vector<Parameter> specification_;
  FlatLayout layout_;
  HostBuffer weights_;
  HostBuffer gradients_;
  Gpt model_;
  AdamW optimizer_;
  std::array<double, kWords> mine_{};
  std::vector<double> shared_;  // everybody's words, by rank
  Stream stream_;
  GradientReducer reducer_;
  int64_t steps_ = 0;
};

}  // namespace weft::train
