// SPDX-License-Identifier: Apache-2.0
// What losses are multiplied with so that small gradients do not vanish in fp16 (Micikevicius et al., "Mixed precision
// training", arXiv 1710.03740): halved as soon as one is too large, and doubled after so many steps without.
#pragma once

#include <cstdint>
#include <optional>

namespace weft::train {

class LossScale {
 public:
  // What a checkpoint keeps of it.
  struct State {
    double scale;
    int64_t goodSteps;     // since it last changed
    int64_t skippedSteps;  // ever
    bool operator==(const State&) const = default;
  };
  static constexpr double kLeast = 1, kMost = 0x1p60;

  // Begins at `initial`, and doubles after `window` good steps in a row.
  static LossScale dynamic(double initial, int64_t window) { return {initial, window}; }
  // Stays as it is; steps that overflow are skipped all the same.
  static LossScale fixed(double scale) { return {scale, {}}; }

  double value() const { return state_.scale; }
  const State& state() const { return state_; }
  // Goes on as a checkpoint says; a fixed one keeps its own scale.
  void resume(const State& state);

  // A step was made with it,
  void stepped();
  // or skipped, as a gradient was not finite. False: no smaller scale would help.
  bool overflowed();

 private:
  LossScale(double scale, std::optional<int64_t> window) : state_{scale, 0, 0}, window_(window) {}

  State state_;
  std::optional<int64_t> window_;  // none: fixed
};

}  // namespace weft::train
