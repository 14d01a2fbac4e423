// SPDX-License-Identifier: Apache-2.0
// A run of weft-train beside a serial one in plain libtorch.
#pragma once

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "tests/train/serial_reference.h"
#include "tests/train/small_runs.h"

namespace weft::train {

// Relative, over 30 steps. Measured with the kernels of three generations of processors: losses
// 2.7e-7, norms 4.2e-7 and 2.3e-6 of SGD (clip_grad_norm_ divides by the norm + 1e-6), and 1.1e-7
// in the first step.
inline constexpr double kLoss = 1e-6, kNorm = 1e-5, kFirst = 5e-7;
// What a wrong reference departs by at the least. Measured: losses 5.9e-5.
inline constexpr double kWrong = 20 * kLoss;

class Reference : public SmallRuns {
 protected:
  // What weft-train reads from the same flags.
  Options optionsOf(const std::string& flags) const {
    std::vector<std::string> words;
    std::istringstream stream(command(flags));
    for (std::string word; stream >> word;) words.push_back(word);
    std::vector<const char*> arguments;
    for (const std::string& word : words) arguments.push_back(word.c_str());
    return parseOptions(static_cast<int>(arguments.size()), arguments.data());
  }

  Curve serial(const std::string& flags, const Departure& departure = {}) const {
    return serialCurve(optionsOf(flags), departure);
  }

  // A run of weft-train that learns, beside the serial one of the same flags.
  Curve expectToFollow(const std::string& flags) const {
    const Curve right = serial(flags);
    EXPECT_LT(right.losses.back(), right.losses.front() - 1) << flags;
    return expectToFollow(right, flags);
  }

  Curve expectToFollow(const Curve& right, const std::string& flags) const {
    const Curve ours = train(flags);
    EXPECT_LT(distance(right.losses, ours.losses), kLoss) << flags;
    EXPECT_LT(distance(right.norms, ours.norms), kNorm) << flags;
    EXPECT_LT(std::abs(ours.losses[0] / right.losses[0] - 1), kFirst) << flags;
    EXPECT_LT(std::abs(ours.norms[0] / right.norms[0] - 1), kFirst) << flags;
    return ours;
  }
};

inline void expectDeparted(const Curve& ours, const Curve& wrong, const std::string& how) {
  EXPECT_GT(distance(ours.losses, wrong.losses), kWrong) << how;
}

}  // namespace weft::train
