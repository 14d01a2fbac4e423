// SPDX-License-Identifier: Apache-2.0
#include "tools/train/adamw.h"

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace weft::train {
namespace {

struct Coefficients {
  float beta1, beta2, epsilon;
  float rate;           // the learning rate over the bias correction of the mean
  float keep;           // 1 - learning rate * weight decay
  float varianceScale;  // over the bias correction of the variance
  float gradientScale;
};

void update(const Coefficients& c, size_t n, float* __restrict w, const float* __restrict g,
            float* __restrict m, float* __restrict v) {
  for (size_t i = 0; i < n; ++i) {
    const float gradient = g[i] * c.gradientScale;
    m[i] = c.beta1 * m[i] + (1 - c.beta1) * gradient;
    v[i] = c.beta2 * v[i] + (1 - c.beta2) * gradient * gradient;
    w[i] = w[i] * c.keep - c.rate * m[i] / (std::sqrt(v[i] * c.varianceScale) + c.epsilon);
  }
}

}  // namespace

AdamW::AdamW(const AdamWSettings& settings, std::vector<AdamWRange> ranges, size_t flatSize)
    : settings_(settings), ranges_(std::move(ranges)), mean_(flatSize), variance_(flatSize) {}

void AdamW::step(std::span<float> weights, std::span<const float> gradients, double learningRate,
                 double gradientScale) {
  ++steps_;
  const double meanCorrection = 1 - std::pow(settings_.beta1, static_cast<double>(steps_));
  const double varianceCorrection = 1 - std::pow(settings_.beta2, static_cast<double>(steps_));
  for (const auto& [offset, size, decay] : ranges_) {
    const Coefficients c{
        .beta1 = static_cast<float>(settings_.beta1),
        .beta2 = static_cast<float>(settings_.beta2),
        .epsilon = static_cast<float>(settings_.epsilon),
        .rate = static_cast<float>(learningRate / meanCorrection),
        .keep = decay ? static_cast<float>(1 - learningRate * settings_.weightDecay) : 1.0f,
        .varianceScale = static_cast<float>(1 / varianceCorrection),
        .gradientScale = static_cast<float>(gradientScale),
    };
    update(c, size, &weights[offset], &gradients[offset], &mean_[offset], &variance_[offset]);
  }
}

double norm(std::span<const float> values) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  const size_t even = values.size() / kLanes * kLanes;
  for (size_t i = 0; i < even; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (size_t i = even; i < values.size(); ++i)
    sums[0] += static_cast<double>(values[i]) * values[i];
  double total = 0;
  for (double sum : sums) total += sum;
  return std::sqrt(total);
}

double learningRate(double peak, int64_t step, int64_t warmup, int64_t steps) {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const double span = static_cast<double>(std::max<int64_t>(steps - 1 - warmup, 1));
  const double done = static_cast<double>(step - warmup) / span;
  return peak * (0.1 + 0.9 * 0.5 * (1 + std::cos(std::numbers::pi * std::min(done, 1.0))));
}

}  // namespace weft::train
