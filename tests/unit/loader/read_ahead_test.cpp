// SPDX-License-Identifier: Apache-2.0
#include "tools/train/read_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <stdexcept>
#include <string>

namespace weft::train {
namespace {

Batch batchOf(uint64_t index) {
  Batch batch;
  batch.tokens = {static_cast<int64_t>(index)};
  return batch;
}

TEST(ReadAhead, GivesBatchesInTheirOrderFromAnywhere) {
  ReadAhead ahead(batchOf);
  std::mt19937 random(1);
  uint64_t next = 0;
  for (int i = 0; i < 400; ++i) {
    if (random() % 16 == 0) ahead.startAt(next = random() % 1000);
    ASSERT_EQ(ahead.take().tokens, batchOf(next++).tokens);
  }
}

TEST(ReadAhead, MakesSomeAheadAndNotAll) {
  std::atomic<uint64_t> made{0};
  ReadAhead ahead([&](uint64_t index) {
    made = index + 1;
    return batchOf(index);
  });
  while (made < 8) std::this_thread::yield();  // nobody has asked for one
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(ahead.take().tokens, batchOf(i).tokens);
    EXPECT_LE(made, i + 10);
  }
}

TEST(ReadAhead, FailsWhereABatchDoes) {
  ReadAhead ahead([](uint64_t index) {
    if (index == 3) throw std::runtime_error("batch 3");
    return batchOf(index);
  });
  for (int i = 0; i < 3; ++i) static_cast<void>(ahead.take());
  try {
    static_cast<void>(ahead.take());
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "batch 3");
  }
  EXPECT_EQ(ahead.take().tokens, batchOf(4).tokens);
}

TEST(ReadAhead, CountsWhatItTakes) {
  ReadAhead ahead([](uint64_t index) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return batchOf(index);
  });
  // On a busy machine this thread may come when a batch is there already, but not each time.
  for (int i = 0; i < 6 || (i < 1000 && ahead.times().waited == 0); ++i)
    static_cast<void>(ahead.take());
  EXPECT_GE(ahead.times().made, 0.010);
  EXPECT_GT(ahead.times().waited, 0);
}

// Nothing is ahead of it, so that how well batches are read ahead says the rest.
TEST(ReadAhead, CountsTheFirstBatchApart) {
  ReadAhead ahead([](uint64_t index) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return batchOf(index);
  });
  static_cast<void>(ahead.take());
  for (int i = 0; i < 1000 && ahead.times().first == 0; ++i) {
    ahead.startAt(0);
    static_cast<void>(ahead.take());
  }
  EXPECT_GT(ahead.times().first, 0);
  EXPECT_EQ(ahead.times().made, 0);
  EXPECT_EQ(ahead.times().waited, 0);
  static_cast<void>(ahead.take());
  EXPECT_GE(ahead.times().made, 0.002);
}

}  // namespace
}  // namespace weft::train
