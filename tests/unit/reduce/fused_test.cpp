// SPDX-License-Identifier: Apache-2.0
// What optimizer.h does in one pass past the caches has the bits of the passes it stands for.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "reduce/optimizer.h"
#include "target_test.h"

namespace weft::reduce {
namespace {

constexpr size_t kCounts[] = {0, 1, 1023, 1024, 1025, 4096, 5003};
constexpr uint64_t kFirsts[] = {0, 3 * kGrid, 77};

class FusedTest : public TargetTest {};
WEFT_FOR_EACH_TARGET(FusedTest);

std::vector<float> random(size_t n, uint32_t seed, float lowest = -1) {
  std::mt19937 bits(seed);
  std::uniform_real_distribution<float> draw(lowest, 1);
  std::vector<float> all(n);
  for (float& x : all) x = draw(bits);
  return all;
}

// Gradients of each type, some of them not finite.
struct Gradients {
  std::vector<float> f32;
  std::vector<uint16_t> bf16, f16;
  std::vector<Addend> addends;

  Gradients(size_t n, bool bad) : f32(random(n, 1)), bf16(n), f16(n) {
    const std::vector<float> more = random(n, 2);
    castFloats(DType::F16, f16.data(), more.data(), n, {}, 0);
    if (bad && n > 2000) {
      f32[1500] = std::numeric_limits<float>::quiet_NaN();
      f32[2] = std::numeric_limits<float>::infinity();
    }
    castFloats(DType::BF16, bf16.data(), f32.data(), n, {}, 0);
    addends = {{bf16.data(), DType::BF16}, {f32.data(), DType::F32}, {f16.data(), DType::F16}};
  }
};

template <class T>
void expectSame(const std::vector<T>& expected, const T* got) {
  ASSERT_TRUE(expected.empty() ||
              std::memcmp(expected.data(), got, expected.size() * sizeof(T)) == 0);
}

void expectSame(const GradientStats& expected, const GradientStats& got) {
  EXPECT_EQ(expected.squares.words(), got.squares.words());
  EXPECT_EQ(expected.nonFinite, got.nonFinite);
  EXPECT_EQ(expected.firstNonFinite, got.firstNonFinite);
}

// An array that begins so many bytes after a multiple of 64.
template <class T>
class Placed {
 public:
  Placed(size_t n, size_t offset) : memory_(n + 64 + offset) {
    const auto at = reinterpret_cast<uintptr_t>(memory_.data());
    data_ = memory_.data() + ((0 - at) % 64 + offset) / sizeof(T);
  }
  T* data() const { return data_; }

 private:
  std::vector<T> memory_;
  T* data_;
};

TEST_P(FusedTest, SumsPastTheCachesAreTheSame) {
  for (const size_t n : kCounts) {
    for (const uint64_t first : kFirsts) {
      for (const size_t offset : {0u, 12u}) {
        const Gradients gradients(n, true);
        std::vector<float> expected(n);
        Placed<float> got(n, offset);
        GradientStats passes, fused;
        foldGradients(expected.data(), gradients.addends, 1, false, n, first, &passes);
        foldGradientsStream(got.data(), gradients.addends, n, first, &fused);
        expectSame(expected, got.data());
        expectSame(passes, fused);
        foldGradientsStream(got.data(), gradients.addends, n, first, nullptr);
      }
    }
  }
}

void expectSameStep(DType type, const Rounding& rounding, size_t n, uint64_t first, size_t offset,
                    bool bad) {
  const Gradients gradients(n, bad);
  const AdamW settings{.gradientScale = 0.25, .step = 3};
  std::vector<float> sums(n), w = random(n, 3), m = random(n, 4), v = random(n, 5, 0);
  std::vector<uint16_t> out(n);
  GradientStats passes, fused;
  Placed<uint16_t> one(n, 0), two(n, offset);
  void* const targets[] = {one.data(), two.data()};
  FusedSlice slice{.first = first,
                   .n = n,
                   .gradients = gradients.addends,
                   .out = targets,
                   .outType = type,
                   .rounding = rounding};
  std::vector<float> w2 = w, m2 = m, v2 = v;
  slice.weights = w2.data(), slice.m = m2.data(), slice.v = v2.data();
  foldAndStepAdamW(settings, slice, &fused);

  foldGradients(sums.data(), gradients.addends, 1, false, n, first, &passes);
  stepAdamW(settings,
            {.first = first,
             .n = n,
             .weights = w.data(),
             .gradients = sums.data(),
             .out = out.data(),
             .outType = type,
             .rounding = rounding},
            m.data(), v.data());
  expectSame(w, w2.data());
  expectSame(m, m2.data());
  expectSame(v, v2.data());
  expectSame(out, one.data());
  expectSame(out, two.data());
  expectSame(passes, fused);
}

TEST_P(FusedTest, AStepHasTheBitsOfItsPasses) {
  for (const DType type : {DType::BF16, DType::F16})
    for (const Rounding& rounding : {Rounding{}, Rounding{RoundingMode::Stochastic, 9, 4}})
      for (const size_t n : kCounts)
        for (const uint64_t first : kFirsts)
          for (const size_t offset : {0u, 6u})
            expectSameStep(type, rounding, n, first, offset, n == 5003);
}

}  // namespace
}  // namespace weft::reduce
