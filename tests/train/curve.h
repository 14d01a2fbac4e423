// SPDX-License-Identifier: Apache-2.0
// What a training run leaves behind.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace weft::train {

struct Curve {
  std::vector<double> losses, norms;
  std::string weights;  // fingerprint of the final ones
};

// The largest relative difference of two curves.
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]) / std::abs(a[i]));
  }
  return largest;
}

}  // namespace weft::train
