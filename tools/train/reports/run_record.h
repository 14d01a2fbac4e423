// SPDX-License-Identifier: Apache-2.0
// What a run has done so far, for those who draw it or say how far it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::train {

// Of a training in fp16: what the loss was multiplied with, and how many steps were skipped until then.
struct LossScaling {
  double scale = 1;
  int64_t skippedSteps = 0;
};

struct StepRecord {
  int64_t step = 0;
  double loss = 0, gradientNorm = 0, learningRate = 0;
  double seconds = 0, exposedSeconds = 0;
  double elapsedSeconds = 0;  // since the run began, evaluations and checkpoints included
  std::optional<LossScaling> scaling = {};
};

struct Evaluation {
  double loss = 0;
  std::optional<double> accuracy =
      {};  // of a classification: the share of samples that it gets right
};

struct EvaluationRecord {
  int64_t step = 0;  // after which it was made
  Evaluation found = {};
  double elapsedSeconds = 0;
};

struct RunRecord {
  int ranks = 1;
  double sequencesPerStep = 1, tokensPerStep = 1;  // of all ranks together
  double flopsPerToken = 0;
  double peakTeraflops = 0;  // of a rank; 0 = nobody told
  bool hasPerplexity =
      false;  // of a model that predicts the next token: BERT's loss is of two tasks
  std::vector<StepRecord> steps;
  std::vector<EvaluationRecord> evaluations;

  double teraflops(double tokensPerSecond) const { return tokensPerSecond * flopsPerToken / 1e12; }
  // Model FLOPs utilization; only where the peak is known.
  double utilization(double tokensPerSecond) const {
    return teraflops(tokensPerSecond) / (ranks * peakTeraflops);
  }
};

}  // namespace weft::train
