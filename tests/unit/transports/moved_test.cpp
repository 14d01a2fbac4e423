// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/moved.h"

#include <alloca.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "base/text.h"
#include "transports/setup.h"
#include "transports/shm/available.h"
#include "transports/shm/heap.h"
#include "transports/shm/memory.h"

namespace weft::shm {
namespace {

constexpr std::size_t kPageBytes = 4096;

struct Freeing {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, Freeing>;

// malloc'ed, with bytes that follow from `seed`.
Memory filled(std::size_t bytes, unsigned seed) {
  Memory memory(static_cast<std::byte*>(std::malloc(bytes)));
  std::mt19937 random(seed);
  std::generate_n(memory.get(), bytes, [&] { return std::byte(random()); });
  return memory;
}
bool isFilled(const Memory& memory, std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  return std::all_of(memory.get(), memory.get() + bytes,
                     [&](std::byte b) { return b == std::byte(random()); });
}

class Moved : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(Heap::create(64 * kHugePage, &heap_).ok()); }

  std::uintptr_t add(std::byte* memory, std::size_t bytes) {
    std::uintptr_t key = 0;
    const Status status = moved().add(memory, bytes, &key);
    EXPECT_TRUE(status.ok()) << status.text();
    return key;
  }
  void expectStays(std::byte* memory, std::size_t bytes, Code code, const char* why) {
    std::uintptr_t key = 0;
    const Status status = moved().add(memory, bytes, &key);
    EXPECT_EQ(status.code(), code);
    EXPECT_NE(status.text().find(why), std::string::npos) << status.text();
  }
  MovedRanges& moved() { return heap_->moved(); }

  std::unique_ptr<Heap> heap_;
};

// Whole pages are the heap's, in both directions; the ends are copied when asked.
void expectIsShown(const HeapAlias& alias) {
  alias.copyIn();
  ASSERT_TRUE(std::equal(alias.here, alias.here + alias.bytes, alias.memory));
  for (std::size_t i = 0; i < alias.bytes; i += 509) alias.here[i] ^= std::byte{0xff};
  for (std::size_t i = alias.head; i < alias.bytes - alias.tail; i += 127)
    ASSERT_EQ(alias.here[i], alias.memory[i]);
  alias.copyOut();
  ASSERT_TRUE(std::equal(alias.here, alias.here + alias.bytes, alias.memory));
  for (std::size_t i = 0; i < alias.bytes; i += 509) alias.memory[i] ^= std::byte{0xff};
  alias.copyIn();
  ASSERT_TRUE(std::equal(alias.here, alias.here + alias.bytes, alias.memory));
}

TEST_F(Moved, RangesKeepEveryByteThereAndBack) {
  std::mt19937 random(7);
  for (unsigned round = 0; round < 40; ++round) {
    const std::size_t bytes = 3 * kPageBytes + random() % (round % 8 == 0 ? 6u << 20 : 200000u);
    const Memory memory = filled(bytes, round);
    const std::size_t from = random() % kPageBytes, to = bytes - random() % kPageBytes;
    const std::uintptr_t key = add(memory.get() + from, to - from);
    EXPECT_TRUE(isFilled(memory, bytes, round)) << bytes;
    const auto alias = moved().find(memory.get() + from, to - from);
    ASSERT_TRUE(alias.has_value());
    EXPECT_TRUE(heap_->contains(alias->here) && !heap_->contains(memory.get()));
    EXPECT_LT(alias->head, kPageBytes);
    EXPECT_LT(alias->tail, kPageBytes);
    expectIsShown(*alias);
    ASSERT_TRUE(moved().drop(key).ok());
    EXPECT_TRUE(isFilled(memory, bytes, round)) << bytes;
    EXPECT_FALSE(moved().find(memory.get() + from, to - from).has_value());
  }
  std::byte* const whole = heap_->reserve(64 * kHugePage);  // every place is free again
  EXPECT_NE(whole, nullptr);
}

// A store would take the line from all peers that have read it.
TEST_F(Moved, EndsThatAreEqualAreNotStored) {
  const std::size_t bytes = 4 * kPageBytes;
  const Memory memory = filled(bytes + 100, 1);
  const std::uintptr_t key = add(memory.get() + 100, bytes);
  const auto alias = moved().find(memory.get() + 100, bytes);
  ASSERT_TRUE(alias.has_value() && alias->head + alias->tail != 0);
  alias->copyIn();
  std::byte* const pages = alias->here - reinterpret_cast<std::uintptr_t>(alias->here) % kPageBytes;
  ASSERT_EQ(mprotect(pages, 5 * kPageBytes, PROT_READ), 0);
  alias->copyIn();
  ASSERT_EQ(mprotect(pages, 5 * kPageBytes, PROT_READ | PROT_WRITE), 0);
  EXPECT_TRUE(moved().drop(key).ok());
}

TEST_F(Moved, PartsAreFoundAndNothingBeyond) {
  const std::size_t bytes = 50000;
  const Memory memory = filled(bytes, 1);
  const std::uintptr_t key = add(memory.get(), bytes);
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const std::size_t from = random() % bytes, length = random() % (bytes - from) + 1;
    const auto alias = moved().find(memory.get() + from, length);
    ASSERT_TRUE(alias.has_value());
    expectIsShown(*alias);
  }
  EXPECT_FALSE(moved().find(memory.get() - 1, 2).has_value());
  EXPECT_FALSE(moved().find(memory.get() + bytes - 1, 2).has_value());
  EXPECT_FALSE(moved().find(memory.get(), ~std::size_t{0}).has_value());
  EXPECT_TRUE(moved().drop(key).ok());
}

TEST_F(Moved, AgainAndWithinIsOneMoreUser) {
  const std::size_t bytes = 40000;
  const Memory memory = filled(bytes, 5);
  const std::uintptr_t first = add(memory.get(), bytes);
  const std::uintptr_t again = add(memory.get(), bytes), part = add(memory.get() + 100, 900);
  EXPECT_TRUE(moved().drop(first).ok());
  EXPECT_TRUE(moved().drop(again).ok());
  EXPECT_TRUE(moved().find(memory.get(), bytes).has_value());
  EXPECT_TRUE(moved().drop(part).ok());
  EXPECT_FALSE(moved().any());
  EXPECT_TRUE(isFilled(memory, bytes, 5));
}

TEST_F(Moved, WhatOverlapsStaysAndSaysWhy) {
  const std::size_t bytes = 40000;
  const Memory memory = filled(bytes, 5);
  const std::uintptr_t key = add(memory.get() + 10000, 20000);
  for (const std::size_t from : {std::size_t{0}, std::size_t{20000}})
    expectStays(memory.get() + from, 20000, Code::InvalidUsage,
                "a part of it is registered already: 20000 bytes at 0x");
  expectStays(memory.get(), bytes, Code::InvalidUsage, "a part of it is registered already");
  EXPECT_TRUE(moved().drop(key).ok());
  EXPECT_TRUE(isFilled(memory, bytes, 5));
}

TEST_F(Moved, WhatCannotMoveStaysAndSaysWhy) {
  const Memory memory = filled(3 * kPageBytes, 5);
  expectStays(memory.get(), 100, Code::InvalidUsage, "100 bytes that contain no whole page");
  // Not an array: AddressSanitizer has those elsewhere.
  auto* const onStack = static_cast<std::byte*>(::alloca(3 * kPageBytes));
  expectStays(onStack, 3 * kPageBytes, Code::InvalidUsage, "stack");
  expectStays(reinterpret_cast<std::byte*>(kPageBytes), 2 * kPageBytes, Code::InvalidArgument,
              "no memory is mapped at 0x1000");
  std::byte* const all = heap_->reserve(64 * kHugePage);
  expectStays(memory.get(), 3 * kPageBytes, Code::OutOfMemory, "has no room for");
  EXPECT_TRUE(heap_->unreserve(all).ok());
  EXPECT_TRUE(isFilled(memory, 3 * kPageBytes, 5));
}

TEST_F(Moved, WithoutMemoryForTheCopyItStays) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no address space for more than there is memory";
#endif
  const std::size_t bytes = roundUp(2 * availableMemory().bytes, kHugePage);
  std::unique_ptr<Heap> large;
  ASSERT_TRUE(Heap::create(2 * bytes, &large).ok());
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::uintptr_t key = 0;
  const Status status = large->moved().add(static_cast<std::byte*>(memory), bytes, &key);
  EXPECT_EQ(status.code(), Code::OutOfMemory);
  EXPECT_NE(status.text().find("or register less"), std::string::npos) << status.text();
  ::munmap(memory, bytes);
}

// Who frees first has broken the contract: nothing is written where something else may be now.
TEST_F(Moved, WhatWasUnmappedMeanwhileIsLeftAlone) {
  constexpr std::size_t kMapped = 1 << 20;
  auto* const memory = static_cast<std::byte*>(
      ::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const std::uintptr_t key = add(memory, kMapped);
  ASSERT_EQ(::mmap(memory, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                   -1, 0),
            memory);
  memory[5] = std::byte{77};
  const Status status = moved().drop(key);
  EXPECT_EQ(status.code(), Code::InvalidUsage);
  for (const char* part : {"1048576 bytes at 0x", "were freed, unmapped or mapped anew", "fix:"})
    EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
  EXPECT_EQ(memory[5], std::byte{77});
  EXPECT_FALSE(moved().any());
  ::munmap(memory, kMapped);
}

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  void tell() { EXPECT_EQ(::write(ends[1], "x", 1), 1); }
  bool await() {
    char c = 0;
    return ::read(ends[0], &c, 1) == 1;
  }
};

// As malloc's memory: a child's stores are its own. And until it has ended it sees what was there,
// whatever becomes of the place.
TEST(MovedAndFork, AChildHasItsOwn) {
  Heap* const heap = Heap::own();
  ASSERT_NE(heap, nullptr);
  const std::size_t bytes = 3 << 20;
  const Memory memory = filled(bytes, 9);
  std::uintptr_t key = 0;
  ASSERT_TRUE(heap->moved().add(memory.get(), bytes, &key).ok());
  Pipe toChild, toParent;
  const pid_t child = ::fork();
  if (child == 0) {
    const std::byte before = memory.get()[100000];
    memory.get()[100000] = ~before;
    toParent.tell();
    const bool told = toChild.await();  // the parent has moved it back and used its place
    const bool mine = memory.get()[100000] == std::byte(~before);
    memory.get()[100000] = before;
    ::_exit(told && mine && isFilled(memory, bytes, 9) ? 0 : 1);
  }
  EXPECT_TRUE(toParent.await());
  EXPECT_TRUE(isFilled(memory, bytes, 9));
  ASSERT_TRUE(heap->moved().drop(key).ok());
  void* other = nullptr;
  ASSERT_TRUE(heap->allocate(bytes, &other).ok());
  std::fill_n(static_cast<std::byte*>(other), bytes, std::byte{1});
  toChild.tell();
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(isFilled(memory, bytes, 9));
  EXPECT_TRUE(heap->release(other).ok());
}

}  // namespace
}  // namespace weft::shm
