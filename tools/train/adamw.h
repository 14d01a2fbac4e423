// SPDX-License-Identifier: Apache-2.0
// The optimizer: AdamW (Loshchilov and Hutter, 2019) on flat buffers, and its learning rate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::train {

struct AdamWSettings {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weightDecay = 0.1;
};

// One run of the flat buffer with or without weight decay.
struct AdamWRange {
  size_t offset;
  size_t size;
  bool decay;
};

class AdamW {
 public:
  AdamW(const AdamWSettings& settings, std::vector<AdamWRange> ranges, size_t flatSize);

  // One step of the weights along `gradientScale` * gradients; the scale carries the clipping.
  void step(std::span<float> weights, std::span<const float> gradients, double learningRate,
            double gradientScale);

 private:
  AdamWSettings settings_;
  std::vector<AdamWRange> ranges_;
  std::vector<float> mean_;      // of the gradients: Adam's m
  std::vector<float> variance_;  // of the gradients, uncentered: Adam's v
  int64_t steps_ = 0;
};

// The l2 norm, summed in fp64 in a fixed order.
double norm(std::span<const float> values);

// Linear warm-up to `peak`, then half a cosine down to a tenth of it at the last step.
double learningRate(double peak, int64_t step, int64_t warmup, int64_t steps);

}  // namespace weft::train
