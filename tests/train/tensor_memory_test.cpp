// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/tensor_memory.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "tools/train/models/libtorch_error.h"

namespace weft::train {
namespace {

constexpr size_t kLarge = TensorMemory::kLarge;

TEST(TensorMemory, OfLargeTensorsStaysForTheNextOfAboutTheirSize) {
  const TensorMemory memory;
  std::optional<at::DataPtr> first = memory.allocate(8 * kLarge);
  std::memset(first->get(), 1, 8 * kLarge);
  const void* const place = first->get();
  first.reset();
  EXPECT_EQ(memory.keptBytes(), 8 * kLarge);
  EXPECT_NE(memory.allocate(9 * kLarge).get(), place) << "it is too small";
  EXPECT_NE(memory.allocate(7 * kLarge).get(), place) << "an eighth and more would be wasted";
  const at::DataPtr next = memory.allocate(8 * kLarge - 100);
  EXPECT_EQ(next.get(), place);
  EXPECT_NE(memory.allocate(8 * kLarge).get(), place) << "it is in use";
}

TEST(TensorMemory, OfSizesThatVaryIsThatOfTheLargest) {
  const TensorMemory memory;
  for (size_t i = 1; i <= 100; ++i) {
    const at::DataPtr next = memory.allocate(16 * kLarge + i * 1000);
    std::memset(next.get(), 1, 16 * kLarge + i * 1000);
  }
  EXPECT_EQ(memory.keptBytes(), 18 * kLarge);
}

TEST(TensorMemory, OfSmallTensorsIsMallocs) {
  const TensorMemory memory;
  for (const size_t bytes : {size_t{0}, size_t{1}, kLarge - 1}) {
    const at::DataPtr small = memory.allocate(bytes);
    if (bytes > 0) std::memset(small.get(), 1, bytes);
  }
  EXPECT_EQ(memory.keptBytes(), 0U);
}

TEST(TensorMemory, IsAlignedAndCanBeHadWithoutATensor) {
  TensorMemory memory;
  for (const size_t bytes : {size_t{1}, 2 * kLarge}) {
    void* const raw = memory.raw_allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(raw) % 64, 0U);
    std::memset(raw, 1, bytes);
    memory.raw_deallocate(raw);
  }
  EXPECT_EQ(memory.keptBytes(), 2 * kLarge);
}

// Backward and the thread that writes activations to a file free what others have allocated.
TEST(TensorMemory, ManyThreadsUseIt) {
  const TensorMemory memory;
  std::vector<std::thread> threads;
  for (uint8_t mark = 1; mark <= 4; ++mark)
    threads.emplace_back([&memory, mark] {
      for (size_t i = 0; i < 200; ++i) {
        const size_t bytes = kLarge + i % 3 * 7000;
        at::DataPtr own = memory.allocate(bytes);
        auto* const data = static_cast<uint8_t*>(own.get());
        std::memset(data, mark, bytes);
        std::this_thread::yield();
        EXPECT_TRUE(data[0] == mark && data[bytes / 2] == mark && data[bytes - 1] == mark);
        std::thread([freed = std::move(own)] {}).join();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(memory.keptBytes(), 0U);
  EXPECT_LE(memory.keptBytes(), 4 * 3 * (kLarge + 14000));
}

TEST(TensorMemory, ThatIsNotThereIsTold) {
  const TensorMemory memory;
  memory.allocate(kLarge);
  try {
    const at::DataPtr all = memory.allocate(size_t{1} << 60);
    FAIL() << all.get();
  } catch (const c10::Error& error) {
    EXPECT_STREQ(failureOf(error).what(),
                 "there is no memory for a tensor of 1.15e+09 GB; lower --seq, --batch or the "
                 "model's sizes");
  }
  EXPECT_EQ(memory.keptBytes(), 0U) << "what was kept is given back first";
}

}  // namespace
}  // namespace weft::train
