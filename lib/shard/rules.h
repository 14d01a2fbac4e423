// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "reduce/optimizer.h"

namespace weft::shard {

enum class Optimizer : std::uint8_t { AdamW, Lamb, Sgd, Custom, Lans };

// Do they need norms of whole parameters before they step?
constexpr bool needsTrust(Optimizer kind) {
  return kind == Optimizer::Lamb || kind == Optimizer::Lans;
}

// A run of one parameter that an optimizer is to step: never across two parameters.
struct StateRun {
  std::uint32_t parameter = 0;
  std::uint64_t from = 0;  // in the parameter
  std::uint64_t at = 0;    // in what was visited
  reduce::StepSlice slice;
  float* gradients = nullptr;  // may be overwritten
  float* state[2] = {};        // m and v, or the momentum
  double weightDecay = 0;

  // Its arrays by number, as checkpoints have them: the weights, then the optimizer's.
  struct Array {
    reduce::DType type;
    void* data;
  };
  Array array(std::size_t i) const {
    return i == 0 ? Array{slice.weightType, slice.weights}
                  : Array{reduce::DType::F32, state[i - 1]};
  }
};

// What changes from step to step.
struct StepSettings {
  double learningRate = 1e-3;
  double gradientScale = 1;  // averaging, unscaling and clipping, all at once
  std::int64_t step = 1;
};

// Hyperparameters that do not change from step to step.
struct OptimizerSettings {
  Optimizer kind = Optimizer::AdamW;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double momentum = 0;
  bool nesterov = false;
  bool lambOnAll = false;  // NVLAMB: the trust ratio also where nothing decays
  // Custom: changes slice.weights, which are fp32, and the state by gradients * gradientScale.
  std::function<Status(const StateRun&, const StepSettings&)> custom;
};
// Arrays of state of one float an element, by name, as checkpoints have them.
std::vector<std::string> stateNames(const OptimizerSettings& settings);

// Of one parameter, the squares of the weights and of the update, or of LANS's two directions.
struct TrustSums {
  void add(const TrustSums& other) {
    weights.add(other.weights);
    update.add(other.update);
    gradient.add(other.gradient);
  }
  reduce::ExactSum weights, update, gradient;
};

// What follows from such sums for the step of one parameter.
struct Trust {
  double scale = 1;          // of its gradients, beside the step's: LANS normalises them
  double ratio = 1;          // of the update
  double gradientRatio = 1;  // of LANS's other direction
};

// LANS's first norm: that of gradients of these squares, which the step scales.
double normalizing(const OptimizerSettings& settings, const StepSettings& step,
                   const reduce::ExactSum& squares);
// The first phase: m and v, and LAMB's update in place of the gradients.
void prepareTrust(const OptimizerSettings& settings, const StepSettings& step, const StateRun& run,
                  double scale, TrustSums* sums);
// The trust ratios.
void decideTrust(const OptimizerSettings& settings, const TrustSums& sums, double weightDecay,
                 Trust* trust);

reduce::AdamW adamWOf(const OptimizerSettings& settings, const StepSettings& step,
                      const StateRun& run);

// The whole step of a run, or LAMB's and LANS's second phase.
Status stepRun(const OptimizerSettings& settings, const StepSettings& step, const StateRun& run,
               const Trust& trust);

}  // namespace weft::shard
