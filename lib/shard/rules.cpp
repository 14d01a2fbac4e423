// SPDX-License-Identifier: Apache-2.0
#include "shard/rules.h"

#include <cmath>

namespace weft::shard {

std::vector<std::string> stateNames(const OptimizerSettings& settings) {
  if (settings.kind != Optimizer::Sgd) return {"m", "v"};
  if (settings.momentum == 0) return {};
  return {"momentum"};
}

reduce::AdamW adamWOf(const OptimizerSettings& o, const StepSettings& step, const StateRun& run) {
  return {.learningRate = step.learningRate,
          .beta1 = o.beta1,
          .beta2 = o.beta2,
          .epsilon = o.epsilon,
          .weightDecay = run.weightDecay,
          .gradientScale = step.gradientScale,
          .step = step.step};
}

void prepareLamb(const OptimizerSettings& o, const StepSettings& step, const StateRun& run,
                 TrustSums* sums) {
  reduce::updateLamb(adamWOf(o, step, run), run.slice, run.state[0], run.state[1], run.gradients,
                     &sums->weights, &sums->update);
}

double trustRatio(const OptimizerSettings& o, const TrustSums& sums, double weightDecay) {
  if (weightDecay == 0 && !o.lambOnAll) return 1;
  const double weights = std::sqrt(sums.weights.value()), update = std::sqrt(sums.update.value());
  return weights > 0 && update > 0 ? weights / update : 1;
}

Status stepRun(const OptimizerSettings& o, const StepSettings& step, const StateRun& run,
               double ratio) {
  switch (o.kind) {
    case Optimizer::AdamW:
      reduce::stepAdamW(adamWOf(o, step, run), run.slice, run.state[0], run.state[1]);
      return {};
    case Optimizer::Lamb:
      reduce::applyUpdate(step.learningRate * ratio, run.slice, run.gradients);
      return {};
    case Optimizer::Sgd:
      reduce::stepSgd({.learningRate = step.learningRate,
                       .momentum = o.momentum,
                       .weightDecay = run.weightDecay,
                       .nesterov = o.nesterov,
                       .gradientScale = step.gradientScale,
                       .firstStep = step.step == 1},
                      run.slice, run.state[0]);
      return {};
    case Optimizer::Custom: {
      const Status status = o.custom(run, step);
      if (run.slice.out != nullptr)  // of what it has left, for all ranks alike
        reduce::castFloats(run.slice.outType, run.slice.out,
                           static_cast<const float*>(run.slice.weights), run.slice.n,
                           run.slice.rounding, run.slice.first);
      return status;
    }
  }
  return {};
}

}  // namespace weft::shard
