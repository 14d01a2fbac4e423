// SPDX-License-Identifier: Apache-2.0
// How long something takes, from here on.
#pragma once

#include <chrono>

namespace weft::train {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace weft::train
