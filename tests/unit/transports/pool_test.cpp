// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "transports/setup.h"
#include "transports/shm/available.h"
#include "transports/shm/children.h"
#include "transports/shm/heap.h"
#include "transports/shm/memory.h"

namespace weft::shm {
namespace {

std::byte* takeBlock(Pool& pool, std::size_t bytes) {
  void* memory = nullptr;
  const Status status = pool.take(bytes, &memory);
  EXPECT_TRUE(status.ok()) << status.text();
  return static_cast<std::byte*>(memory);
}

class PoolOfHeap : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(Heap::create(33 * kHugePage, &heap_).ok()); }
  Pool& pool() { return heap_->pool(); }
  std::unique_ptr<Heap> heap_;
};

TEST_F(PoolOfHeap, BlocksAreApartAndKeepTheirPages) {
  std::mt19937 random(5);
  struct Taken {
    std::byte* at;
    std::size_t bytes;
    std::byte value;
  };
  std::vector<Taken> taken;
  for (int i = 0; i < 400; ++i) {
    const std::size_t bytes = random() % 300000 + 1;
    std::byte* const at = takeBlock(pool(), bytes);
    ASSERT_NE(at, nullptr);
    ASSERT_TRUE(heap_->contains(at) && heap_->contains(at + bytes - 1));
    const std::byte value{static_cast<unsigned char>(i)};
    std::fill_n(at, bytes, value);
    taken.push_back({at, bytes, value});
    if (taken.size() < 50) continue;
    const std::size_t which = random() % taken.size();
    const Taken gone = taken[which];
    ASSERT_TRUE(
        std::all_of(gone.at, gone.at + gone.bytes, [&](std::byte b) { return b == gone.value; }));
    ASSERT_TRUE(pool().give(gone.at).ok());
    taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
  }
  std::byte* const last = taken.back().at;
  for (const Taken& block : taken) ASSERT_TRUE(pool().give(block.at).ok());
  EXPECT_EQ(pool().give(last).code(), Code::InvalidArgument);
  EXPECT_NE(pool().give(last).text().find("did not come from weftPoolAlloc"), std::string::npos);
  std::byte* const again = takeBlock(pool(), 4096);
  again[0] = std::byte{9};
  EXPECT_TRUE(pool().give(again).ok());
  EXPECT_EQ(takeBlock(pool(), 4096), again);
  EXPECT_EQ(again[0], std::byte{9});
}

TEST_F(PoolOfHeap, WithoutRoomThereIsNone) {
  EXPECT_EQ(takeBlock(pool(), 34 * kHugePage), nullptr);
  EXPECT_EQ(takeBlock(pool(), 0), nullptr);
  std::vector<std::byte*> blocks;
  while (std::byte* const block = takeBlock(pool(), 8 << 20)) blocks.push_back(block);
  EXPECT_EQ(blocks.size(), 8u);
  for (std::byte* const block : blocks) EXPECT_TRUE(pool().give(block).ok());
  EXPECT_NE(takeBlock(pool(), 60 << 20), nullptr);
}

// More than there is: none, and what there is goes on to be had.
TEST_F(PoolOfHeap, WithoutMemoryThereIsNone) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no address space for more than there is memory";
#endif
  const std::size_t bytes = 2 * availableMemory().bytes;
  std::unique_ptr<Heap> large;
  ASSERT_TRUE(Heap::create(roundUp(bytes, kHugePage) + 128 * kHugePage, &large).ok());
  EXPECT_EQ(takeBlock(large->pool(), bytes), nullptr);
  EXPECT_NE(takeBlock(large->pool(), 4096), nullptr);
}

// Regions without a block go back, but for those worth keeping.
TEST_F(PoolOfHeap, GivesBackWhatIsNotUsed) {
  std::unique_ptr<Heap> large;
  ASSERT_TRUE(Heap::create(192 * kHugePage, &large).ok());
  std::vector<std::byte*> blocks;
  while (std::byte* const block = takeBlock(large->pool(), 64 << 20)) blocks.push_back(block);
  EXPECT_EQ(blocks.size(), 6u);
  for (std::byte* const block : blocks) EXPECT_TRUE(large->pool().give(block).ok());
  EXPECT_NE(large->reserve(128u << 20), nullptr);
  EXPECT_EQ(large->reserve(128u << 20), nullptr);
}

TEST_F(PoolOfHeap, ServesManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 200; ++i) {
        const std::size_t bytes = (i * 7919 + t * 104729) % 500000 + 1;
        auto* const at = takeBlock(pool(), bytes);
        if (at == nullptr) continue;
        at[0] = at[bytes - 1] = std::byte(t);
        std::this_thread::yield();
        wrong += at[0] != std::byte(t) || at[bytes - 1] != std::byte(t);
        wrong += !pool().give(at).ok();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A child's stores are its own, and what its parent frees stays what it is until the child has ended.
TEST(PoolAndFork, AChildHasItsOwn) {
  Heap* const heap = Heap::own();
  ASSERT_NE(heap, nullptr);
  std::byte* const block = takeBlock(heap->pool(), 1 << 20);
  std::fill_n(block, 1 << 20, std::byte{1});
  int toChild[2], toParent[2];
  ASSERT_TRUE(::pipe(toChild) == 0 && ::pipe(toParent) == 0);
  const auto tell = [](const int* ends) { return ::write(ends[1], "x", 1) == 1; };
  const auto await = [](const int* ends) {
    char c = 0;
    return ::read(ends[0], &c, 1) == 1;
  };
  const pid_t child = ::fork();
  if (child == 0) {
    block[5] = std::byte{2};
    const bool told = tell(toParent) && await(toChild);
    const bool seen = block[5] == std::byte{2} && block[1 << 19] == std::byte{1};
    std::byte* const mine = takeBlock(Heap::own()->pool(), 1 << 20);
    ::_exit(told && seen && mine != nullptr && Heap::isParents(block) && !heap->contains(mine) ? 0
                                                                                               : 1);
  }
  EXPECT_TRUE(await(toParent));
  EXPECT_EQ(block[5], std::byte{1});
  EXPECT_TRUE(Children::live());
  EXPECT_TRUE(heap->pool().give(block).ok());
  std::byte* const other = takeBlock(heap->pool(), 1 << 20);
  EXPECT_NE(other, block);
  std::fill_n(other, 1 << 20, std::byte{3});
  EXPECT_TRUE(heap->pool().give(other).ok());  // born after the fork
  EXPECT_EQ(takeBlock(heap->pool(), 1 << 20), other);
  EXPECT_TRUE(tell(toChild));
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(Children::live());
  EXPECT_EQ(takeBlock(heap->pool(), 1 << 20), block);
  EXPECT_TRUE(heap->pool().give(block).ok());
  EXPECT_TRUE(heap->pool().give(other).ok());
}

}  // namespace
}  // namespace weft::shm
