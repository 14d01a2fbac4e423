// SPDX-License-Identifier: Apache-2.0
// The checker is checked: it accepts a correct reduction computed here, element by element, and
// notices every kind of wrong one.
#include "perf/weft-perf/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "perf/weft-perf/draw.h"

namespace weft::perf {
namespace {

constexpr std::size_t kCount = 3000;  // more than one tile
constexpr std::size_t kFrom = 17;

template <class T>
std::vector<T> inputOf(const Recipe& recipe, int rank) {
  std::vector<T> input(kCount);
  drawInput(recipe, rank, kFrom, kCount, input.data());
  return input;
}

// Types in which arithmetic is the language's own, folded in rank order or against it.
template <class T>
T combine(Op op, T a, T b) {
  using Unsigned = std::uint64_t;
  if constexpr (kIsInteger<T>) {
    const Unsigned sum = static_cast<Unsigned>(a) + static_cast<Unsigned>(b);
    const Unsigned product = static_cast<Unsigned>(a) * static_cast<Unsigned>(b);
    if (op == Op::Prod) return static_cast<T>(product);
    if (op == Op::Max || op == Op::Min) return op == Op::Max ? std::max(a, b) : std::min(a, b);
    if (op == Op::Band || op == Op::Bor) return static_cast<T>(op == Op::Band ? a & b : a | b);
    if (op == Op::Bxor) return static_cast<T>(a ^ b);
    return static_cast<T>(sum);
  } else {
    if (op == Op::Prod) return a * b;
    if (op == Op::Max || op == Op::Min) return op == Op::Max ? std::max(a, b) : std::min(a, b);
    return a + b;
  }
}

template <class T>
std::vector<T> reduced(const Recipe& recipe, bool backwards) {
  std::vector<T> result;
  for (int i = 0; i < recipe.ranks; ++i) {
    const int rank = backwards ? recipe.ranks - 1 - i : i;
    std::vector<T> terms = inputOf<T>(recipe, rank);
    T weight{};
    std::memcpy(&weight, preMultiplier(recipe, rank).bytes, sizeof(T));
    for (T& term : terms) {
      if (recipe.op == Op::MulSum) term = combine(Op::Prod, term, weight);
    }
    if (i == 0) result = terms;
    for (std::size_t k = 0; k < kCount && i > 0; ++k) {
      result[k] = combine(recipe.op, result[k], terms[k]);
    }
  }
  for (T& value : result) {
    if (recipe.op == Op::Avg) value = static_cast<T>(value / static_cast<T>(recipe.ranks));
  }
  return result;
}

template <class T>
class VerifyNative : public testing::Test {};
using Natives = testing::Types<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t,
                               std::uint64_t, float, double>;
TYPED_TEST_SUITE(VerifyNative, Natives);

template <class T, class Body>
void forAllRecipes(Body body) {
  for (const OpInfo& op : allOps()) {
    if (!suits(op, typeInfo(kDataType<T>))) continue;
    for (int ranks : {1, 2, 3, 5, 8, 13}) {
      for (Fill fill : {Fill::Exact, Fill::Random}) {
        body(Recipe{kDataType<T>, op.op, ranks, fill, 42}, op.name);
      }
    }
  }
}

TYPED_TEST(VerifyNative, AcceptsAnyOrderOfFolding) {
  forAllRecipes<TypeParam>([](const Recipe& recipe, const char* op) {
    for (bool backwards : {false, true}) {
      const std::vector<TypeParam> result = reduced<TypeParam>(recipe, backwards);
      const CheckResult found = verifyReduced(recipe, kFrom, kCount, result.data());
      EXPECT_EQ(found.wrong, 0u) << op << " of " << recipe.ranks << ": " << found.first;
    }
  });
}

TYPED_TEST(VerifyNative, CountsEachFlippedElement) {
  forAllRecipes<TypeParam>([](const Recipe& recipe, const char* op) {
    std::vector<TypeParam> result = reduced<TypeParam>(recipe, false);
    auto* bytes = reinterpret_cast<unsigned char*>(result.data());
    for (std::size_t element : {std::size_t{0}, std::size_t{1023}, std::size_t{1024}, kCount - 1}) {
      bytes[(element + 1) * sizeof(TypeParam) - 1] ^= 0x20;  // of floats: an exponent bit
    }
    EXPECT_EQ(verifyReduced(recipe, kFrom, kCount, result.data()).wrong, 4u) << op;
  });
}

TYPED_TEST(VerifyNative, NoticesAMissingRank) {
  const Recipe all{kDataType<TypeParam>, Op::Sum, 4, Fill::Exact, 7};
  std::vector<TypeParam> partial = inputOf<TypeParam>(all, 0);
  for (int rank : {1, 2}) {
    const std::vector<TypeParam> terms = inputOf<TypeParam>(all, rank);
    for (std::size_t k = 0; k < kCount; ++k) partial[k] = combine(Op::Sum, partial[k], terms[k]);
  }
  EXPECT_GT(verifyReduced(all, kFrom, kCount, partial.data()).wrong, kCount * 9 / 10);
}

TYPED_TEST(VerifyNative, MovedDataIsComparedBitByBit) {
  const Recipe recipe{kDataType<TypeParam>, Op::None, 3, Fill::Exact, 9};
  std::vector<TypeParam> moved = inputOf<TypeParam>(recipe, 2);
  EXPECT_EQ(verifyMoved(recipe, 2, kFrom, kCount, moved.data()).wrong, 0u);
  EXPECT_GT(verifyMoved(recipe, 1, kFrom, kCount, moved.data()).wrong, kCount * 9 / 10);
  EXPECT_GT(verifyMoved(recipe, 2, kFrom + 1, kCount, moved.data()).wrong, kCount * 9 / 10);
  reinterpret_cast<unsigned char*>(moved.data())[5 * sizeof(TypeParam)] ^= 1;
  EXPECT_EQ(verifyMoved(recipe, 2, kFrom, kCount, moved.data()).wrong, 1u);
}

// Rounds a float to the nearest Bfloat16, ties to even.
Bfloat16 rounded(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  bits += 0x7fff + (bits >> 16 & 1);
  return {static_cast<std::uint16_t>(bits >> 16)};
}

std::vector<Bfloat16> brainSum(const Recipe& recipe, bool roundEachAddition) {
  std::vector<float> sums(kCount);
  for (int rank = 0; rank < recipe.ranks; ++rank) {
    const std::vector<Bfloat16> terms = inputOf<Bfloat16>(recipe, rank);
    for (std::size_t k = 0; k < kCount; ++k) {
      sums[k] += static_cast<float>(widen(terms[k]));
      if (roundEachAddition) sums[k] = static_cast<float>(widen(rounded(sums[k])));
    }
  }
  std::vector<Bfloat16> result(kCount);
  std::transform(sums.begin(), sums.end(), result.begin(), rounded);
  return result;
}

TEST(VerifyBrain, OneRoundingIsTheRule) {
  Recipe recipe{weftBfloat16, Op::Sum, 8, Fill::Random, 3};
  EXPECT_EQ(verifyReduced(recipe, kFrom, kCount, brainSum(recipe, false).data()).wrong, 0u);
  const std::vector<Bfloat16> coarse = brainSum(recipe, true);
  EXPECT_GT(verifyReduced(recipe, kFrom, kCount, coarse.data()).wrong, kCount / 10);
  recipe.halfRoundings = recipe.ranks - 1;
  EXPECT_EQ(verifyReduced(recipe, kFrom, kCount, coarse.data()).wrong, 0u);
}

TEST(VerifyBrain, ExactDataIsExactInAnyOrder) {
  const Recipe recipe{weftBfloat16, Op::Sum, 8, Fill::Exact, 3};
  EXPECT_EQ(verifyReduced(recipe, kFrom, kCount, brainSum(recipe, true).data()).wrong, 0u);
}

TEST(VerifyFloat, ABitLostInTheMiddleIsNoticed) {
  const Recipe recipe{weftFloat32, Op::Sum, 4, Fill::Random, 5};
  std::vector<float> result = reduced<float>(recipe, false);
  for (float& value : result) {  // computed in bfloat16's precision by mistake
    value = static_cast<float>(widen(rounded(value)));
  }
  EXPECT_GT(verifyReduced(recipe, kFrom, kCount, result.data()).wrong, kCount / 2);
}

TEST(Draw, RanksAndPositionsDiffer) {
  const Recipe recipe{weftInt64, Op::None, 2, Fill::Exact, 1};
  std::int64_t a = 0, b = 0, far = 0;
  drawInput(recipe, 0, 5, 1, &a);
  drawInput(recipe, 1, 5, 1, &b);
  drawInput(recipe, 0, 5 + (std::size_t{1} << 32), 1, &far);
  EXPECT_NE(a, b);
  EXPECT_NE(a, far);
}

TEST(Draw, ManyRanksStayExact) {
  const Recipe recipe{weftBfloat16, Op::Avg, 300, Fill::Exact, 1};
  double sum = 0;
  for (int rank = 0; rank < recipe.ranks; ++rank) sum += widen(inputOf<Bfloat16>(recipe, rank)[0]);
  EXPECT_LE(std::abs(sum), 256);
}

TEST(Draw, OnesAddUpToTheRanks) {
  const Recipe recipe{weftFloat16, Op::Sum, 5, Fill::Ones, 3};
  std::vector<Float16> sums(kCount, narrow<Float16>(5));
  EXPECT_EQ(verifyReduced(recipe, kFrom, kCount, sums.data()).wrong, 0u);
  sums[7] = narrow<Float16>(4);
  const CheckResult found = verifyReduced(recipe, kFrom, kCount, sums.data());
  EXPECT_EQ(found.wrong, 1u);
  EXPECT_EQ(found.first, "element 24 is 4, expected 5");
}

TEST(VerifyInteger, ExpectsWhatTheTypeCanHold) {
  const Recipe recipe{weftUint8, Op::Sum, 300, Fill::Ones, 0};
  const std::uint8_t wrong = 45;
  EXPECT_EQ(verifyReduced(recipe, 0, 1, &wrong).first, "element 0 is 45, expected 44");
}

TEST(Untouched, CountsWrittenBytes) {
  std::vector<unsigned char> bytes(100, 7);
  EXPECT_EQ(verifyUntouched(bytes.data(), 100, 7, "x").wrong, 0u);
  bytes[40] = 8;
  const CheckResult found = verifyUntouched(bytes.data(), 100, 7, "of the margin");
  EXPECT_EQ(found.wrong, 1u);
  EXPECT_EQ(found.first, "byte 40 of the margin was written");
}

TEST(Hash, DependsOnEveryBitAndItsPlace) {
  std::vector<unsigned char> bytes(37);
  const std::uint64_t zero = hashOf(bytes.data(), bytes.size());
  EXPECT_NE(zero, hashOf(bytes.data(), bytes.size() - 1));
  std::vector<std::uint64_t> seen = {zero};
  for (unsigned char& byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      byte = static_cast<unsigned char>(1 << bit);
      seen.push_back(hashOf(bytes.data(), bytes.size()));
      byte = 0;
    }
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

}  // namespace
}  // namespace weft::perf
