// SPDX-License-Identifier: Apache-2.0
// The kernels of optimizer.h against formulas in double, and their promises: the same bits for any
// split, alignment and instruction set.
#include "reduce/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "target_test.h"

namespace weft::reduce {
namespace {

using Floats = std::vector<float>;
using Bits = std::vector<uint16_t>;

constexpr size_t kCounts[] = {0, 1, 7, 16, 31, 33, 255, 1023, 1024, 1025, 3001};
constexpr Rounding kStochastic{RoundingMode::Stochastic, 9, 4};

Floats uniform(size_t n, float lowest, float highest, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(lowest, highest);
  Floats all(n);
  for (float& x : all) x = draw(random);
  return all;
}

Bits rounded(DType to, const Floats& src) {
  Bits dst(src.size());
  castFloats(to, dst.data(), src.data(), src.size(), {}, 0);
  return dst;
}

Floats widened(DType from, const Bits& src) {
  Floats dst(src.size());
  widen(from, dst.data(), src.data(), src.size());
  return dst;
}

// Equal but for what a few roundings to float do to terms of this size.
void expectClose(double expected, float got, double size) {
  ASSERT_NEAR(expected, static_cast<double>(got), 1e-6 * (std::fabs(expected) + size));
}

class OptimizerTest : public TargetTest {};
WEFT_FOR_EACH_TARGET(OptimizerTest);

// ---- gradients ----

// Addends of the three types, in the order given.
struct Sources {
  Floats f32;
  Bits bf16, f16;
  std::vector<Addend> addends;

  explicit Sources(size_t n)
      : f32(uniform(n, -1, 1, 1)),
        bf16(rounded(DType::BF16, uniform(n, -1, 1, 2))),
        f16(rounded(DType::F16, uniform(n, -1, 1, 3))),
        addends{{bf16.data(), DType::BF16},
                {f32.data(), DType::F32},
                {f16.data(), DType::F16},
                {bf16.data(), DType::BF16}} {}

  float sum(size_t i) const {
    const float b = widened(DType::BF16, {bf16[i]})[0], h = widened(DType::F16, {f16[i]})[0];
    return ((b + f32[i]) + h) + b;
  }
  std::vector<Addend> from(size_t at) const {
    return {{&bf16[at], DType::BF16},
            {&f32[at], DType::F32},
            {&f16[at], DType::F16},
            {&bf16[at], DType::BF16}};
  }
};

TEST_P(OptimizerTest, FoldAddsInOrderAndScales) {
  for (size_t n : kCounts) {
    const Sources sources(n);
    Floats sum(n), total(n, 3);
    foldGradients(sum.data(), sources.addends, 0.25f, false, n, 0, nullptr);
    foldGradients(total.data(), sources.addends, 0.25f, true, n, 5, nullptr);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(sources.sum(i) * 0.25f, sum[i]) << i << " of " << n;
      ASSERT_EQ(3 + sum[i], total[i]) << i << " of " << n;
    }
  }
}

TEST_P(OptimizerTest, FoldOfOneKeepsTheSignOfZero) {
  Floats data = {-0.0f, 0.0f};
  const Addend own{data.data(), DType::F32};
  foldGradients(data.data(), {&own, 1}, 1, false, 2, 0, nullptr);
  EXPECT_TRUE(std::signbit(data[0]));
  EXPECT_FALSE(std::signbit(data[1]));
}

TEST_P(OptimizerTest, SquaresAreSummed) {
  for (size_t n : kCounts) {
    const Floats data = uniform(n, -2, 2, 4);
    const Addend own{data.data(), DType::F32};
    Floats dst(n);
    GradientStats stats;
    foldGradients(dst.data(), {&own, 1}, 0.5f, false, n, 77, &stats);
    long double expected = 0;
    for (float x : dst) expected += static_cast<long double>(x) * static_cast<long double>(x);
    EXPECT_NEAR(static_cast<double>(expected), stats.squares.value(),
                1e-13 * static_cast<double>(expected));
    EXPECT_EQ(0u, stats.nonFinite);
    EXPECT_EQ(GradientStats::kNone, stats.firstNonFinite);
  }
}

// Whoever cuts at grid borders, and in whatever order, gets the same sum.
TEST_P(OptimizerTest, SquaresDoNotDependOnTheShards) {
  const size_t n = 20 * kGrid + 300;
  const Sources sources(n);
  Floats dst(n);
  GradientStats whole;
  foldGradients(dst.data(), sources.addends, 1, false, n, 3 * kGrid, &whole);
  for (size_t blocks : {1u, 3u, 8u}) {
    GradientStats parts;
    for (size_t end = n; end > 0;) {  // the last shard first
      const size_t at = (end - 1) / (blocks * kGrid) * blocks * kGrid;
      foldGradients(&dst[at], sources.from(at), 1, false, end - at, 3 * kGrid + at, &parts);
      end = at;
    }
    EXPECT_EQ(whole.squares.words(), parts.squares.words()) << blocks;
  }
}

TEST_P(OptimizerTest, WhatIsNotFiniteIsCountedAndFound) {
  Floats data(5000, 1);
  data[1500] = std::numeric_limits<float>::infinity();
  data[1501] = std::numeric_limits<float>::quiet_NaN();
  data[4999] = -std::numeric_limits<float>::infinity();
  const Addend own{data.data(), DType::F32};
  GradientStats stats;
  foldGradients(data.data(), {&own, 1}, 1, false, data.size(), 10, &stats);
  EXPECT_EQ(3u, stats.nonFinite);
  EXPECT_EQ(1510u, stats.firstNonFinite);
  EXPECT_TRUE(std::isnan(stats.squares.value()));
}

TEST_P(OptimizerTest, HugeGradientsAreFinite) {
  Floats data(1024, std::numeric_limits<float>::max());
  const Addend own{data.data(), DType::F32};
  GradientStats stats;
  foldGradients(data.data(), {&own, 1}, 1, false, data.size(), 0, &stats);
  const auto most = static_cast<double>(data[0]);
  EXPECT_EQ(0u, stats.nonFinite);
  EXPECT_NEAR(1, stats.squares.value() / (1024 * most * most), 1e-14);
}

// ---- steps ----

// A model of n elements and its state, at a chosen misalignment.
struct Model {
  Floats w, g, m, v, update;
  Bits out;

  explicit Model(size_t n)
      : w(uniform(n, -1, 1, 5)),
        g(uniform(n, -1, 1, 6)),
        m(uniform(n, -0.1f, 0.1f, 7)),
        v(uniform(n, 0, 0.01f, 8)),
        update(n),
        out(n) {}

  StepSlice slice(size_t at, size_t n) {
    return {.first = 500 + at,
            .n = n,
            .weights = w.data() + at,
            .gradients = g.data() + at,
            .out = out.data() + at,
            .rounding = kStochastic};
  }
  bool operator==(const Model&) const = default;
};

constexpr AdamW kAdamW{.learningRate = 1e-2, .weightDecay = 0.1, .gradientScale = 0.5, .step = 3};
constexpr AdamW kLamb{.epsilon = 1e-6, .weightDecay = 0.1, .gradientScale = 0.5, .step = 3};

TEST_P(OptimizerTest, AdamWIsTheFormula) {
  for (size_t n : kCounts) {
    const Model before(n);
    Model after = before;
    stepAdamW(kAdamW, after.slice(0, n), after.m.data(), after.v.data());
    for (size_t i = 0; i < n; ++i) {
      const double g = 0.5 * static_cast<double>(before.g[i]);
      const double m = 0.9 * static_cast<double>(before.m[i]) + 0.1 * g;
      const double v = 0.999 * static_cast<double>(before.v[i]) + 0.001 * g * g;
      const double bc1 = 1 - std::pow(0.9, 3), bc2 = 1 - std::pow(0.999, 3);
      const double w = static_cast<double>(before.w[i]) * (1 - 1e-3) -
                       1e-2 / bc1 * m / (std::sqrt(v) / std::sqrt(bc2) + 1e-8);
      expectClose(m, after.m[i], 0.1);
      expectClose(v, after.v[i], 0.001);
      expectClose(w, after.w[i], 0.1);
    }
  }
}

TEST_P(OptimizerTest, SgdIsTheFormula) {
  for (const bool nesterov : {false, true}) {
    for (const bool first : {false, true}) {
      const size_t n = 1037;
      const Model before(n);
      Model after = before;
      stepSgd({0.1, 0.9, 0.01, nesterov, 0.5, first}, after.slice(0, n), after.m.data());
      for (size_t i = 0; i < n; ++i) {
        const auto w = static_cast<double>(before.w[i]);
        const double g = 0.5 * static_cast<double>(before.g[i]) + 0.01 * w;
        const double buffer = first ? g : 0.9 * static_cast<double>(before.m[i]) + g;
        expectClose(buffer, after.m[i], 1);
        expectClose(w - 0.1 * (nesterov ? g + 0.9 * buffer : buffer), after.w[i], 1);
      }
    }
  }
}

TEST_P(OptimizerTest, SgdWithoutMomentumNeedsNoBuffer) {
  const Model before(100);
  Model after = before;
  stepSgd({.learningRate = 0.5}, after.slice(0, 100), nullptr);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(before.w[i] - 0.5f * before.g[i], after.w[i]);
}

TEST_P(OptimizerTest, LambIsTheFormula) {
  for (size_t n : kCounts) {
    const Model before(n);
    Model after = before;
    ExactSum weights, updates;
    updateLamb(kLamb, after.slice(0, n), after.m.data(), after.v.data(), after.update.data(),
               &weights, &updates);
    double weightSquares = 0, updateSquares = 0;
    for (size_t i = 0; i < n; ++i) {
      const double g = 0.5 * static_cast<double>(before.g[i]);
      const double m = 0.9 * static_cast<double>(before.m[i]) + 0.1 * g;
      const double v = 0.999 * static_cast<double>(before.v[i]) + 0.001 * g * g;
      const double bc1 = 1 - std::pow(0.9, 3), bc2 = 1 - std::pow(0.999, 3);
      const auto w = static_cast<double>(before.w[i]);
      expectClose(m / bc1 / (std::sqrt(v / bc2) + 1e-6) + 0.1 * w, after.update[i], 1);
      weightSquares += w * w;
      updateSquares += static_cast<double>(after.update[i]) * static_cast<double>(after.update[i]);
    }
    EXPECT_EQ(before.w, after.w);
    EXPECT_EQ(before.out, after.out);
    EXPECT_NEAR(weightSquares, weights.value(), 1e-12 * weightSquares);
    EXPECT_NEAR(updateSquares, updates.value(), 1e-12 * updateSquares);
    applyUpdate(0.25, after.slice(0, n), after.update.data());
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(before.w[i] - 0.25f * after.update[i], after.w[i]);
  }
}

TEST_P(OptimizerTest, LansIsTheFormula) {
  for (size_t n : kCounts) {
    const Model before(n);
    Model after = before;
    LansSquares squares;
    updateLans(kLamb, after.slice(0, n), after.m.data(), after.v.data(), &squares);
    EXPECT_EQ(before.w, after.w);
    const double bc1 = 1 - std::pow(0.9, 3), bc2 = 1 - std::pow(0.999, 3);
    std::vector<double> r(n), c(n);
    double sums[3] = {};
    for (size_t i = 0; i < n; ++i) {
      const auto w = static_cast<double>(before.w[i]);
      const double g = 0.5 * static_cast<double>(before.g[i]);
      const double m = 0.9 * static_cast<double>(before.m[i]) + 0.1 * g;
      const double v = 0.999 * static_cast<double>(before.v[i]) + 0.001 * g * g;
      expectClose(m, after.m[i], 1);
      expectClose(v, after.v[i], 1);
      r[i] = m / bc1 / (std::sqrt(v / bc2) + 1e-6) + 0.1 * w;
      c[i] = g / (std::sqrt(v / bc2) + 1e-6) + 0.1 * w;
      sums[0] += w * w, sums[1] += r[i] * r[i], sums[2] += c[i] * c[i];
    }
    EXPECT_NEAR(sums[0], squares.weights.value(), 1e-12 * sums[0]);
    EXPECT_NEAR(sums[1], squares.momentum.value(), 1e-5 * sums[1]);
    EXPECT_NEAR(sums[2], squares.gradient.value(), 1e-5 * sums[2]);
    ExactSum weights;
    addSquares(before.w.data(), 500, n, &weights);
    EXPECT_EQ(weights.value(), squares.weights.value());
    applyLans(kLamb, 0.25, 0.125, after.slice(0, n), after.m.data(), after.v.data());
    for (size_t i = 0; i < n; ++i)
      expectClose(static_cast<double>(before.w[i]) - 0.25 * r[i] - 0.125 * c[i], after.w[i], 1);
  }
}

// All steps one after the other, on n elements from `at` on.
void allSteps(Model& model, size_t at, size_t n) {
  const StepSlice slice = model.slice(at, n);
  float *m = model.m.data() + at, *v = model.v.data() + at, *update = model.update.data() + at;
  stepAdamW(kAdamW, slice, m, v);
  stepSgd({.learningRate = 0.1, .momentum = 0.9, .weightDecay = 0.01, .nesterov = true}, slice, m);
  updateLamb(kLamb, slice, m, v, update, nullptr, nullptr);
  applyUpdate(1e-3, slice, update);
  LansSquares squares;
  updateLans(kLamb, slice, m, v, &squares);
  applyLans(kLamb, 1e-3, 1e-4, slice, m, v);
}

TEST_P(OptimizerTest, AnySplitGivesTheSameBits) {
  const size_t n = 4000;
  Model whole(n);
  allSteps(whole, 0, n);
  std::mt19937 random(10);
  for (int round = 0; round < 20; ++round) {
    Model cut(n);
    for (size_t at = 0; at < n;) {
      const size_t count = std::min<size_t>(1 + random() % (round < 10 ? 100 : 2000), n - at);
      allSteps(cut, at, count);
      at += count;
    }
    ASSERT_TRUE(whole == cut) << round;
  }
}

TEST_P(OptimizerTest, OutIsTheRoundedWeight) {
  const size_t n = 3000;
  for (DType type : {DType::BF16, DType::F16}) {
    for (const Rounding& rounding : {Rounding{}, kStochastic}) {
      Model model(n);
      StepSlice slice = model.slice(0, n);
      slice.outType = type;
      slice.rounding = rounding;
      stepAdamW(kAdamW, slice, model.m.data(), model.v.data());
      Bits expected(n);
      castFloats(type, expected.data(), model.w.data(), n, rounding, slice.first);
      EXPECT_EQ(expected, model.out);
    }
  }
  Model model(n);
  StepSlice slice = model.slice(0, n);
  slice.out = model.update.data();
  slice.outType = DType::F32;
  stepAdamW(kAdamW, slice, model.m.data(), model.v.data());
  EXPECT_EQ(model.w, model.update);
}

// Without a master copy: what a float step makes of the widened weights, rounded.
TEST_P(OptimizerTest, SixteenBitWeightsAreRoundedBack) {
  const size_t n = 2500;
  for (DType type : {DType::BF16, DType::F16}) {
    Model half(n), full(n);
    Bits weights = rounded(type, half.w);
    full.w = widened(type, weights);
    StepSlice slice = half.slice(0, n);
    slice.weights = weights.data();
    slice.weightType = type;
    slice.outType = type;
    stepAdamW(kAdamW, slice, half.m.data(), half.v.data());
    stepAdamW(kAdamW, full.slice(0, n), full.m.data(), full.v.data());
    Bits expected(n);
    castFloats(type, expected.data(), full.w.data(), n, kStochastic, slice.first);
    EXPECT_EQ(expected, weights);
    EXPECT_EQ(expected, half.out);
  }
}

TEST_P(OptimizerTest, NaNsAreTheOneNaN) {
  Model model(64);
  const uint32_t nan = 0xFFABCDEF;
  for (float& g : model.g) std::memcpy(&g, &nan, sizeof nan);
  allSteps(model, 0, 64);
  const Floats expected(64, std::numeric_limits<float>::quiet_NaN());
  for (const Floats* array : {&model.w, &model.m, &model.v, &model.update}) {
    EXPECT_EQ(0, std::memcmp(expected.data(), array->data(), 64 * sizeof(float)));
  }
  EXPECT_EQ(Bits(64, 0x7FC0), model.out);
}

// ---- over all instruction sets, and over many steps ----

void onEachTarget(const std::function<void()>& check) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

TEST(Optimizer, SameBitsOnAllTargets) {
  const size_t n = 5001;
  const Sources sources(n);
  std::vector<Model> models;
  std::vector<ExactSum::Words> squares;
  onEachTarget([&] {
    models.emplace_back(n);
    GradientStats stats;
    foldGradients(models.back().g.data(), sources.addends, 0.3f, true, n, 3, &stats);
    allSteps(models.back(), 0, n);
    squares.push_back(stats.squares.words());
  });
  for (size_t i = 1; i < models.size(); ++i) {
    EXPECT_TRUE(models[0] == models[i]) << i;
    EXPECT_EQ(squares[0], squares[i]) << i;
  }
}

// Weights 0, 333 and 999 of linspace(-1, 1, 1000) after 20 steps on gradients sin(0.37 i + 1.1
// step).
Floats after20Steps(const std::function<void(const StepSlice&, int64_t step)>& take) {
  const double places[] = {0, 333, 999};
  Floats w, g(3);
  for (double i : places) w.push_back(static_cast<float>(-1 + 2 * i / 999));
  for (int64_t step = 1; step <= 20; ++step) {
    for (size_t k = 0; k < 3; ++k) {
      g[k] = static_cast<float>(std::sin(0.37 * places[k] + 1.1 * static_cast<double>(step)));
    }
    take({.n = 3, .weights = w.data(), .gradients = g.data()}, step);
  }
  return w;
}

void expectNear(const Floats& expected, const Floats& got) {
  for (size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(expected[k], got[k], 1e-6) << k;
}

// The expected weights are those of torch::optim in libtorch 1.13.
TEST(Optimizer, StepsAreThoseOfTorch) {
  Floats m(3), v(3), buffer(3);
  const auto adamW = [&](const StepSlice& slice, int64_t step) {
    stepAdamW({.learningRate = 1e-2, .weightDecay = 0.1, .step = step}, slice, m.data(), v.data());
  };
  expectNear({-1.01513529f, -0.306277156f, 0.941098571f}, after20Steps(adamW));
  Sgd sgd{.learningRate = 1e-2, .momentum = 0.9, .weightDecay = 0.1};
  const auto withSgd = [&](const StepSlice& slice, int64_t step) {
    sgd.firstStep = step == 1;
    stepSgd(sgd, slice, buffer.data());
  };
  expectNear({-0.959329963f, -0.258829981f, 0.813558638f}, after20Steps(withSgd));
  sgd.nesterov = true;
  expectNear({-0.959692895f, -0.254509091f, 0.798362017f}, after20Steps(withSgd));
}

// The mean weight after 2000 steps of AdamW at a rate far below half a step of bfloat16 at 1.
double meanAfterTraining(DType weightType, RoundingMode mode) {
  const size_t n = 1024;
  Floats full(n, 1), m(n), v(n);
  const Floats g(n, -1);
  Bits weights(n, 0x3F80);
  for (int64_t step = 1; step <= 2000; ++step) {
    StepSlice slice{.n = n, .weights = full.data(), .gradients = g.data()};
    if (weightType != DType::F32) slice.weights = weights.data();
    slice.weightType = weightType;
    slice.rounding = {mode, 1, static_cast<uint64_t>(step)};
    stepAdamW({.learningRate = 1e-4, .weightDecay = 0, .step = step}, slice, m.data(), v.data());
  }
  if (weightType != DType::F32) full = widened(weightType, weights);
  double sum = 0;
  for (float x : full) sum += static_cast<double>(x);
  return sum / n;
}

TEST(Optimizer, WithoutMasterWeightsOnlyStochasticRoundingTracksFloat) {
  const double exact = meanAfterTraining(DType::F32, RoundingMode::Nearest);
  EXPECT_NEAR(1.2, exact, 1e-4);
  EXPECT_EQ(1, meanAfterTraining(DType::BF16, RoundingMode::Nearest));
  // A step up is 2^-7 and has probability 1e-4 / 2^-7, so the deviation of an element is below
  // 0.04.
  EXPECT_NEAR(exact, meanAfterTraining(DType::BF16, RoundingMode::Stochastic), 4 * 0.04 / 32);
}

}  // namespace
}  // namespace weft::reduce
