// SPDX-License-Identifier: Apache-2.0
#include "base/biased_flag.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace weft {
namespace {

TEST(BiasedFlag, IsUpOnce) {
  BiasedFlag flag;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(flag.isUp());
    EXPECT_TRUE(flag.raise());
    EXPECT_TRUE(flag.isUp());
    EXPECT_FALSE(flag.raise()) << "by the same thread";
    std::thread([&] { EXPECT_FALSE(flag.raise()) << "by another"; }).join();
    EXPECT_FALSE(flag.raise()) << "whom another has come between";
    flag.lower();
  }
}

// More often than it favours anybody.
TEST(BiasedFlag, GoesFromThreadToThread) {
  BiasedFlag flag;
  for (int i = 0; i < 40; ++i) {
    std::thread([&] {
      for (int k = 0; k < 3; ++k) {
        EXPECT_TRUE(flag.raise());
        flag.lower();
      }
    }).join();
    EXPECT_TRUE(flag.raise());
    flag.lower();
  }
}

// Whoever has it up is alone, also while it goes from one to another: `sum` is no atomic. In many flags,
// for of each only the first few changes are between threads that it favours.
TEST(BiasedFlag, KeepsThreadsApart) {
  constexpr int kFlags = 300, kThreads = 3, kTimes = 40;
  for (int i = 0; i < kFlags; ++i) {
    BiasedFlag flag;
    int sum = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        for (int k = 0; k < kTimes; ++k) {
          while (!flag.raise()) std::this_thread::yield();
          ++sum;
          flag.lower();
        }
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(sum, kThreads * kTimes);
  }
}

// Whoever raises it sees what was stored before a heavy fence, or is seen to have it up after that.
TEST(BiasedFlag, IsSeenAcrossAHeavyFence) {
  for (int i = 0; i < 2000; ++i) {
    BiasedFlag flag;
    std::atomic<bool> closed{false}, started{false};
    ASSERT_TRUE(flag.raise());
    flag.lower();
    bool wasUp = false;
    std::thread closer([&] {
      while (!started) std::this_thread::yield();
      closed.store(true);
      heavyFence();
      wasUp = flag.isUp();
    });
    started = true;
    ASSERT_TRUE(flag.raise());
    const bool entered = !closed.load();
    closer.join();
    EXPECT_TRUE(wasUp || !entered);
    flag.lower();
  }
}

}  // namespace
}  // namespace weft
