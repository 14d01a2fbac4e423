// SPDX-License-Identifier: Apache-2.0
// Every type, operator and number of sources, at many lengths and misalignments, against the
// reference, bit for bit.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "arena.h"
#include "reduce/reduce.h"
#include "reference.h"
#include "target_test.h"
#include "tests/unit/slow_build.h"

namespace weft::reduce {
namespace {

using reference::dtypeOf;
using reference::folded;
using reference::forEachType;
using reference::randomElements;
using reference::randomSources;

constexpr size_t kMaxCount = 1000;
constexpr size_t kInPlaceCounts[] = {1, 17, 64, 65, 257, kMaxCount};
constexpr size_t kCopyCounts[] = {0,   1,   15,   63,   64,   65,   255,
                                  256, 257, 1000, 2999, 8192, 8193, 20000};
constexpr RedOp kOps[] = {RedOp::Sum,  RedOp::Prod, RedOp::Max,  RedOp::Min,      RedOp::Avg,
                          RedOp::Band, RedOp::Bor,  RedOp::Bxor, RedOp::PreMulSum};

std::vector<size_t> counts() {
  std::vector<size_t> all;
  for (size_t count = 0; count <= (test::kSlowBuild ? 18 : 70); ++count) all.push_back(count);
  if (test::kSlowBuild) all.insert(all.end(), {31, 32, 33, 63, 64, 65});
  all.insert(all.end(), {127, 128, 129, 255, 256, 257, kMaxCount});
  return all;
}

std::vector<uint64_t> divisorsOf(RedOp op) {
  if (op != RedOp::Avg) return {1};
  if (test::kSlowBuild) return {1, 3, uint64_t{1} << 40};
  return {1, 2, 3, 7, 8, 200, 1000003, uint64_t{1} << 40};
}

// Where the destination and the sources lie, in bytes past a border of 64.
struct Shifts {
  size_t dst, src;
};
constexpr Shifts kShifts[] = {{0, 0}, {8, 8}, {16, 0}, {0, 24}, {1, 3}, {32, 5}};

template <class T>
struct Case {
  RedOp op;
  uint64_t divisor;
  std::vector<std::vector<T>> sources;
  std::vector<T> expected;

  Case(RedOp operation, size_t n, uint64_t divideBy)
      : op(operation),
        divisor(divideBy),
        sources(randomSources<T>(n, kMaxCount)),
        expected(folded(op, sources, divisor)) {}

  std::string describe(size_t count) const {
    std::ostringstream text;
    text << name(dtypeOf<T>()) << ' ' << name(op) << " n=" << sources.size() << " /" << divisor
         << " count=" << count;
    return text.str();
  }

  std::vector<Misaligned> placed(size_t shift) const {
    std::vector<Misaligned> arrays;
    for (size_t s = 0; s < sources.size(); ++s) {
      arrays.emplace_back(sources[s], (shift + shift * s * sizeof(T)) % 64);
    }
    return arrays;
  }
};

std::vector<const void*> addresses(const std::vector<Misaligned>& arrays) {
  std::vector<const void*> all;
  for (const Misaligned& array : arrays) all.push_back(array.data());
  return all;
}

template <class T>
void expectBits(const Case<T>& test, const Misaligned& dst, size_t count) {
  if (std::memcmp(dst.data(), test.expected.data(), count * sizeof(T)) == 0) return;
  for (size_t i = 0; i < count; ++i) {
    const T got = dst.at<T>(i);
    ASSERT_EQ(0, std::memcmp(&got, &test.expected[i], sizeof(T)))
        << test.describe(count) << " element " << i << ": got "
        << testing::PrintToString(reference::widen(got)) << ", not "
        << testing::PrintToString(reference::widen(test.expected[i]));
  }
}

template <class T>
void checkShape(FoldFn fold, const Case<T>& test, Shifts shifts) {
  const std::vector<Misaligned> sources = test.placed(shifts.src);
  const std::vector<const void*> src = addresses(sources);
  for (size_t count : counts()) {
    Misaligned dst(kMaxCount * sizeof(T), shifts.dst);
    fold(dst.data(), src.data(), src.size(), count, test.divisor);
    expectBits(test, dst, count);
    ASSERT_TRUE(dst.guardsIntact(count * sizeof(T))) << test.describe(count);
  }
}

template <class T>
void checkInPlace(FoldFn fold, const Case<T>& test, size_t shift) {
  for (size_t owner = 0; owner < test.sources.size(); ++owner) {
    for (size_t count : kInPlaceCounts) {
      std::vector<Misaligned> sources = test.placed(shift);
      const std::vector<const void*> src = addresses(sources);
      fold(sources[owner].data(), src.data(), src.size(), count, test.divisor);
      expectBits(test, sources[owner], count);
    }
  }
}

class FoldTest : public TargetTest {};
WEFT_FOR_EACH_TARGET(FoldTest);

template <class Check>
void forEachCase(std::initializer_list<size_t> widths, const Check& check) {
  forEachType([&]<class T>() {
    for (RedOp op : kOps) {
      if (isBitwise(op) && isFloat(dtypeOf<T>())) continue;
      for (size_t n : widths) {
        for (uint64_t divisor : divisorsOf(op)) check(Case<T>(op, n, divisor));
      }
    }
  });
}

TEST_P(FoldTest, TwoSourcesMatchReference) {
  forEachCase({2}, []<class T>(const Case<T>& test) {
    for (Shifts shifts : kShifts) checkShape(foldKernel(dtypeOf<T>(), test.op), test, shifts);
  });
}

TEST_P(FoldTest, AnyNumberOfSourcesMatchesReference) {
  forEachCase({1, 3, 5, 8, 17}, []<class T>(const Case<T>& test) {
    const FoldFn fold = foldKernel(dtypeOf<T>(), test.op);
    checkShape(fold, test, kShifts[0]);
    checkShape(fold, test, kShifts[4]);
  });
}

TEST_P(FoldTest, DestinationMayBeAnySource) {
  forEachCase({1, 2, 3, 8}, []<class T>(const Case<T>& test) {
    const FoldFn fold = foldKernel(dtypeOf<T>(), test.op);
    for (size_t shift : {size_t{0}, sizeof(T), size_t{3}}) checkInPlace(fold, test, shift);
  });
}

template <class T>
void checkSpread(SpreadFn spread, const Case<T>& test, Shifts shifts, size_t targets) {
  const std::vector<Misaligned> sources = test.placed(shifts.src);
  const std::vector<const void*> src = addresses(sources);
  for (size_t count : counts()) {
    std::vector<Misaligned> outs;
    std::vector<void*> dst;
    for (size_t t = 0; t < targets; ++t) outs.emplace_back(kMaxCount * sizeof(T), shifts.dst);
    for (Misaligned& out : outs) dst.push_back(out.data());
    spread(dst.data(), targets, src.data(), src.size(), count, test.divisor);
    for (Misaligned& out : outs) {
      expectBits(test, out, count);
      ASSERT_TRUE(out.guardsIntact(count * sizeof(T))) << test.describe(count);
    }
  }
}

TEST_P(FoldTest, SpreadGivesTheSameBitsToAll) {
  forEachCase({1, 2, 3}, []<class T>(const Case<T>& test) {
    const SpreadFn spread = spreadKernel(dtypeOf<T>(), test.op);
    if (spread == nullptr) return;
    for (Shifts shifts : kShifts) checkSpread(spread, test, shifts, 1);
    checkSpread(spread, test, kShifts[0], 3);
    checkSpread(spread, test, kShifts[4], 2);
  });
}

// Targets that lie differently to a vector's border have none in common.
TEST_P(FoldTest, SpreadReachesTargetsAnywhere) {
  const Case<float> test(RedOp::Sum, 2, 1);
  const std::vector<Misaligned> sources = test.placed(0);
  std::vector<Misaligned> outs;
  for (size_t shift : {size_t{0}, size_t{4}, size_t{1}})
    outs.emplace_back(kMaxCount * sizeof(float), shift);
  void* const dst[] = {outs[0].data(), outs[1].data(), outs[2].data()};
  spreadKernel(DType::F32, RedOp::Sum)(dst, 3, addresses(sources).data(), 2, kMaxCount, 1);
  for (Misaligned& out : outs) expectBits(test, out, kMaxCount);
}

TEST(SpreadTest, SumsOfFloatsHaveKernels) {
  for (DType type : {DType::F16, DType::BF16, DType::F32, DType::F64})
    EXPECT_NE(spreadKernel(type, RedOp::Avg), nullptr) << name(type);
  EXPECT_EQ(spreadKernel(DType::I32, RedOp::Sum), nullptr);
  EXPECT_EQ(spreadKernel(DType::F32, RedOp::Max), nullptr);
}

TEST_P(FoldTest, FinishDividesInPlace) {
  forEachType([]<class T>() {
    for (uint64_t divisor : divisorsOf(RedOp::Avg)) {
      const Case<T> test(RedOp::Avg, 1, divisor);
      Misaligned data(test.sources[0], sizeof(T));
      finish(dtypeOf<T>(), data.data(), kMaxCount, divisor);
      expectBits(test, data, kMaxCount);
    }
  });
}

TEST_P(FoldTest, ScaleMatchesReference) {
  forEachType([]<class T>() {
    Case<T> test(RedOp::Sum, 1, 1);
    for (T scalar : randomElements<T>(20, 7)) {
      test.expected = reference::scaled(test.sources[0], scalar);
      for (size_t count : counts()) {
        const Misaligned src(test.sources[0], count % 16);
        Misaligned dst(kMaxCount * sizeof(T), count % 5);
        scaleKernel(dtypeOf<T>())(dst.data(), src.data(), count, &scalar);
        expectBits(test, dst, count);
        ASSERT_TRUE(dst.guardsIntact(count * sizeof(T)));
      }
      Misaligned data(test.sources[0], 3);
      scaleKernel(dtypeOf<T>())(data.data(), data.data(), kMaxCount, &scalar);
      expectBits(test, data, kMaxCount);
    }
  });
}

TEST_P(FoldTest, CopyStreamCopiesToAll) {
  const std::vector<uint8_t> bytes = randomElements<uint8_t>(20000, 1);
  for (size_t count : kCopyCounts) {
    for (Shifts shifts : kShifts) {
      Misaligned src(bytes, shifts.src);
      Misaligned one(bytes.size(), shifts.dst), other(bytes.size(), shifts.src);
      void* const dst[] = {one.data(), src.data(), other.data()};
      copyStream(dst, 3, src.data(), count);
      for (Misaligned* copy : {&one, &other}) {
        ASSERT_EQ(0, std::memcmp(copy->data(), bytes.data(), count)) << count;
        ASSERT_TRUE(copy->guardsIntact(count)) << count;
      }
    }
  }
}

TEST(KernelTest, EachTargetHasItsOwn) {
  std::set<FoldFn> kernels;
  const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  for (int64_t target : targets) {
    hwy::GetChosenTarget().Update(target);
    kernels.insert(foldKernel(DType::BF16, RedOp::Sum));
  }
  hwy::GetChosenTarget().DeInit();
  EXPECT_EQ(targets.size(), kernels.size());
}

TEST(KernelTest, AreUsableFromManyThreads) {
  const Case<float> test(RedOp::Sum, 2, 1);
  const std::vector<Misaligned> sources = test.placed(4);
  const auto work = [&] {
    Misaligned dst(kMaxCount * sizeof(float), 0);
    foldKernel(DType::F32, RedOp::Sum)(dst.data(), addresses(sources).data(), 2, kMaxCount, 1);
    expectBits(test, dst, kMaxCount);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

TEST(KernelTest, NamesAndSizesAreThoseOfNcclTests) {
  EXPECT_STREQ("int8", name(DType{0}));
  EXPECT_STREQ("uint64", name(DType{5}));
  EXPECT_STREQ("half", name(DType{6}));
  EXPECT_STREQ("float", name(DType{7}));
  EXPECT_STREQ("double", name(DType{8}));
  EXPECT_STREQ("bfloat16", name(DType{9}));
  EXPECT_STREQ("sum", name(RedOp{0}));
  EXPECT_STREQ("avg", name(RedOp{4}));
  EXPECT_STREQ("band", name(RedOp{5}));
  EXPECT_STREQ("bor", name(RedOp{6}));
  EXPECT_STREQ("bxor", name(RedOp{7}));
  EXPECT_STREQ("mulsum", name(RedOp{8}));
  forEachType([]<class T>() { EXPECT_EQ(sizeof(T), sizeOf(dtypeOf<T>())); });
}

}  // namespace
}  // namespace weft::reduce
