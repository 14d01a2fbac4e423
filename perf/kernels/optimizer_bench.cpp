// SPDX-License-Identifier: Apache-2.0
// weft-bench-optimizer: the kernels of sharded optimizers: rounding, gradients, steps.
//
// items_per_second counts elements. Sizes are in elements: 4 Ki are in the first-level cache, 64 Ki
// in the second, 32 Mi in RAM. Select with --benchmark_filter, e.g. 'cast/bfloat16'.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "perf/common/benchmarks.h"
#include "reduce/optimizer.h"
#include "reduce/reduce.h"
#include "reduce/rounding.h"

namespace {

using weft::reduce::DType;

constexpr size_t kKi = 1024, kMi = 1024 * kKi;
constexpr size_t kChunk = 64 * kKi;  // what a sharded step works on at a time
constexpr weft::reduce::Rounding kNearest{};
constexpr weft::reduce::Rounding kStochastic{weft::reduce::RoundingMode::Stochastic, 1, 1};

std::vector<float> values(size_t n, float lowest, float range) {
  std::vector<float> all(n);
  uint32_t state = 1;
  for (float& x : all) {
    state = state * 1664525 + 1013904223;
    x = lowest + range * static_cast<float>(state >> 8) * 0x1p-24f;
  }
  return all;
}

std::vector<uint16_t> halves(size_t n) {
  std::vector<uint16_t> all(n);
  weft::reduce::castFloats(DType::BF16, all.data(), values(n, -1, 2).data(), n, kNearest, 0);
  return all;
}

template <class Work>
void measure(benchmark::State& state, size_t n, const Work& work) {
  for (auto _ : state) {
    work();
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(n));
}

std::string sizeName(size_t n) {
  return n < kMi ? std::to_string(n / kKi) + "Ki" : std::to_string(n / kMi) + "Mi";
}

void addCast(DType type, const weft::reduce::Rounding& rounding, size_t n) {
  const bool nearest = rounding.mode == weft::reduce::RoundingMode::Nearest;
  const std::string name = std::string("cast/") + weft::reduce::name(type) +
                           (nearest ? "/nearest/" : "/stochastic/") + sizeName(n);
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    const std::vector<float> src = values(n, -1, 2);
    std::vector<uint16_t> dst(n);
    measure(state, n,
            [&] { weft::reduce::castFloats(type, dst.data(), src.data(), n, rounding, 0); });
  });
}

// Gradients from several bfloat16 sources, with statistics, and what the plain fold does.
void addGradients(size_t sources, size_t n) {
  const std::string tail = "/n:" + std::to_string(sources) + '/' + sizeName(n);
  const auto arrays = [=] { return std::vector<std::vector<uint16_t>>(sources, halves(n)); };
  benchmark::RegisterBenchmark(("gradients/fold" + tail).c_str(), [=](benchmark::State& state) {
    const auto from = arrays();
    std::vector<const void*> src;
    for (const auto& array : from) src.push_back(array.data());
    std::vector<uint16_t> dst(n);
    const auto fold = weft::reduce::foldKernel(DType::BF16, weft::reduce::RedOp::Sum);
    measure(state, n, [&] { fold(dst.data(), src.data(), sources, n, 1); });
  });
  for (bool counts : {false, true}) {
    const std::string name = (counts ? "gradients/statistics" : "gradients/plain") + tail;
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
      const auto from = arrays();
      std::vector<weft::reduce::Addend> addends;
      for (const auto& array : from) addends.push_back({array.data(), DType::BF16});
      std::vector<float> dst(n);
      weft::reduce::GradientStats stats;
      measure(state, n, [&] {
        weft::reduce::foldGradients(dst.data(), addends, 0.25f, false, n, 0,
                                    counts ? &stats : nullptr);
      });
    });
  }
}

// A shard of parameters and its optimizer's state, and gradients from four ranks.
struct Shard {
  size_t n;
  std::vector<float> w, g, m, v;
  std::vector<uint16_t> out, received;
  std::array<weft::reduce::Addend, 4> addends;

  explicit Shard(size_t size)
      : n(size),
        w(values(n, -1, 2)),
        g(values(n, -1, 2)),
        m(values(n, -1, 2)),
        v(values(n, 0.5, 1)),
        out(n),
        received(halves(n)) {
    addends.fill({received.data(), DType::BF16});
  }

  weft::reduce::StepSlice slice(size_t at, size_t count, const float* gradients) {
    return {.first = at, .n = count, .weights = &w[at], .gradients = gradients};
  }
  // Sums what was received for the elements from `at` on.
  void fold(size_t at, size_t count, float* sum, weft::reduce::GradientStats* stats) {
    std::array<weft::reduce::Addend, 4> from = addends;
    for (weft::reduce::Addend& addend : from) addend.data = &received[at];
    weft::reduce::foldGradients(sum, from, 0.25f, false, count, at, stats);
  }
  // AdamW, with the clipping and the rounding of the new weights.
  void fusedStep(size_t at, size_t count, const float* gradients,
                 const weft::reduce::Rounding& rounding) {
    weft::reduce::StepSlice part = slice(at, count, gradients);
    part.out = &out[at];
    part.rounding = rounding;
    weft::reduce::stepAdamW({.gradientScale = 1, .step = 10}, part, &m[at], &v[at]);
  }
  // The same as passes over all: scale, step, round.
  void separateStep() {
    const float clip = 1;  // again and again, so that nothing becomes denormal
    weft::reduce::scaleKernel(DType::F32)(g.data(), g.data(), n, &clip);
    weft::reduce::stepAdamW({.step = 10}, slice(0, n, g.data()), m.data(), v.data());
    weft::reduce::castFloats(DType::BF16, out.data(), w.data(), n, kNearest, 0);
  }
};

template <class Work>
void addStep(const std::string& name, size_t n, const Work& work) {
  benchmark::RegisterBenchmark((name + '/' + sizeName(n)).c_str(), [=](benchmark::State& state) {
    Shard shard(n);
    measure(state, n, [&] { work(shard); });
  });
}

void addSteps(size_t n) {
  addStep("adamw/separate", n, [](Shard& s) { s.separateStep(); });
  addStep("adamw/fused/nearest", n, [](Shard& s) { s.fusedStep(0, s.n, s.g.data(), kNearest); });
  addStep("adamw/fused/stochastic", n,
          [](Shard& s) { s.fusedStep(0, s.n, s.g.data(), kStochastic); });
  addStep("whole/separate", n, [](Shard& s) {
    weft::reduce::GradientStats stats;
    const weft::reduce::Addend own{s.g.data(), DType::F32};
    s.fold(0, s.n, s.g.data(), nullptr);
    weft::reduce::foldGradients(s.g.data(), {&own, 1}, 1, false, s.n, 0, &stats);
    s.separateStep();
  });
  addStep("whole/clipped", n, [](Shard& s) {  // the norm is needed before the step
    weft::reduce::GradientStats stats;
    s.fold(0, s.n, s.g.data(), &stats);
    s.fusedStep(0, s.n, s.g.data(), kNearest);
  });
  addStep("whole/unclipped", n, [](Shard& s) {  // the sums of a chunk never leave the cache
    weft::reduce::GradientStats stats;
    for (size_t at = 0; at < s.n; at += kChunk) {
      const size_t count = std::min(kChunk, s.n - at);
      s.fold(at, count, s.g.data(), &stats);
      s.fusedStep(at, count, s.g.data(), kNearest);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  for (size_t n : {4 * kKi, 64 * kKi, 32 * kMi}) {
    for (DType type : {DType::BF16, DType::F16}) {
      for (const weft::reduce::Rounding& rounding : {kNearest, kStochastic})
        addCast(type, rounding, n);
    }
    for (size_t sources : {size_t{2}, size_t{4}, size_t{8}}) addGradients(sources, n);
    addSteps(n);
  }
  return weft::tools::runBenchmarks("weft-bench-optimizer", argc, argv);
}
