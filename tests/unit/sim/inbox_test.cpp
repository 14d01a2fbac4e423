// SPDX-License-Identifier: Apache-2.0
#include "sim/inbox.h"

#include <gtest/gtest.h>

#include <functional>
#include <queue>
#include <random>
#include <vector>

namespace weft::sim {
namespace {

// Messages that come while others of their time are seen to, too.
TEST(Inbox, GivesTheFirstOfAllThatHaveCome) {
  std::mt19937 random(1);
  const auto upTo = [&](std::uint32_t most) {
    return static_cast<std::uint32_t>(random() % (most + 1));
  };
  Inbox inbox;
  std::priority_queue<Came, std::vector<Came>, std::greater<>> all;
  Time now = 0;
  for (int turn = 0; turn < 10000; ++turn) {
    now += upTo(3) == 0 ? upTo(2) : 0;
    for (std::uint32_t k = upTo(turn % 1000 < 500 ? 3 : 1); k > 0; --k) {
      const Came message(now, upTo(2), upTo(1000), upTo(1) == 0);
      inbox.push(message);
      all.push(message);
    }
    ASSERT_EQ(inbox.empty(), all.empty());
    if (all.empty()) continue;
    ASSERT_EQ(inbox.first(), all.top());
    inbox.pop();
    all.pop();
  }
}

TEST(Fifo, KeepsTheOrderAndLittleMore) {
  Fifo<int> queue;
  EXPECT_TRUE(queue.empty());
  int first = 0, next = 0;
  for (int turn = 0; turn < 1000; ++turn) {
    for (int k = 0; k < turn % 5; ++k) queue.push(next++);
    for (int k = 0; k < 2 && !queue.empty(); ++k, queue.pop()) ASSERT_EQ(queue.front(), first++);
    ASSERT_EQ(queue.size(), static_cast<std::size_t>(next - first));
  }
  while (!queue.empty()) {
    ASSERT_EQ(queue.front(), first++);
    queue.pop();
  }
  EXPECT_EQ(first, next);
}

}  // namespace
}  // namespace weft::sim
