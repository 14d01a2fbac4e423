// SPDX-License-Identifier: Apache-2.0
#include "shard/rules.h"

#include <cmath>

namespace weft::shard {
namespace {

reduce::AdamW lansOf(const OptimizerSettings& o, const StepSettings& step, const StateRun& run,
                     double scale) {
  reduce::AdamW settings = adamWOf(o, step, run);
  settings.gradientScale *= scale;
  return settings;
}

}  // namespace

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

double normalizing(const OptimizerSettings& o, const StepSettings& step,
                   const reduce::ExactSum& squares) {
  return 1 / (std::sqrt(squares.value()) * step.gradientScale + o.epsilon);
}

void prepareTrust(const OptimizerSettings& o, const StepSettings& step, const StateRun& run,
                  double scale, TrustSums* sums) {
  if (o.kind == Optimizer::Lamb)
    return reduce::updateLamb(adamWOf(o, step, run), run.slice, run.state[0], run.state[1],
                              run.gradients, &sums->weights, &sums->update);
  reduce::LansSquares squares;
  reduce::updateLans(lansOf(o, step, run, scale), run.slice, run.state[0], run.state[1], &squares);
  sums->add({squares.weights, squares.momentum, squares.gradient});
}

void decideTrust(const OptimizerSettings& o, const TrustSums& sums, double weightDecay,
                 Trust* trust) {
  const auto ratioTo = [whole = std::sqrt(sums.weights.value())](const reduce::ExactSum& squares) {
    const double change = std::sqrt(squares.value());
    return whole > 0 && change > 0 ? whole / change : 1;
  };
  const bool applies = o.kind == Optimizer::Lans || weightDecay != 0 || o.lambOnAll;
  trust->ratio = applies ? ratioTo(sums.update) : 1;
  trust->gradientRatio = ratioTo(sums.gradient);
}

Status stepRun(const OptimizerSettings& o, const StepSettings& step, const StateRun& run,
               const Trust& trust) {
  switch (o.kind) {
    case Optimizer::AdamW:
      reduce::stepAdamW(adamWOf(o, step, run), run.slice, run.state[0], run.state[1]);
      return {};
    case Optimizer::Lamb:
      reduce::applyUpdate(step.learningRate * trust.ratio, run.slice, run.gradients);
      return {};
    case Optimizer::Lans:
      reduce::applyLans(lansOf(o, step, run, trust.scale),
                        step.learningRate * o.beta1 * trust.ratio,
                        step.learningRate * (1 - o.beta1) * trust.gradientRatio, run.slice,
                        run.state[0], run.state[1]);
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
