// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/heap.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "transports/shm/available.h"
#include "transports/shm/memory.h"

namespace weft::transport {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::unique_ptr<shm::Heap> make(std::size_t bytes) {
  std::unique_ptr<shm::Heap> heap;
  const Status made = shm::Heap::create(bytes, &heap);
  EXPECT_TRUE(made.ok()) << made.text();
  return heap;
}

std::byte* allocate(shm::Heap& heap, std::size_t bytes) {
  void* memory = nullptr;
  const Status status = heap.allocate(bytes, &memory);
  EXPECT_TRUE(status.ok()) << status.text();
  return static_cast<std::byte*>(memory);
}

bool isZero(const std::byte* memory, std::size_t bytes) {
  return std::all_of(memory, memory + bytes, [](std::byte b) { return b == std::byte{0}; });
}

long residentPages() {
  long total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident;
}

TEST(Heap, ReservesRoomWithoutPages) {
  const auto heap = make(64 * kMiB);
  const long before = residentPages();
  std::byte* const room = heap->reserve(40 * kMiB);
  ASSERT_NE(room, nullptr);
  EXPECT_EQ(heap->reserve(40 * kMiB), nullptr);
  EXPECT_LT(residentPages() - before, 512);
  ASSERT_TRUE(heap->populate(room + 4096, 3 * 4096).ok());
  std::memset(room, 0x5a, 8 * 4096);
  EXPECT_EQ(heap->release(room).code(), Code::InvalidArgument);
  ASSERT_TRUE(heap->unreserve(room).ok());
  std::byte* const again = heap->reserve(40 * kMiB);
  ASSERT_EQ(again, room);
  EXPECT_TRUE(isZero(again, 8 * 4096));
}

TEST(Heap, AlignsToPagesAndHugePages) {
  const auto heap = make(64 * kMiB);
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4097}, 2 * kMiB - 1, 2 * kMiB, 3 * kMiB + 1, std::size_t{8}}) {
    std::byte* const memory = allocate(*heap, bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_TRUE(heap->contains(memory) && heap->contains(memory + bytes - 1));
    const std::size_t alignment = bytes < shm::kHugePage ? 4096 : shm::kHugePage;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0u) << bytes;
    std::memset(memory, 0x5a, bytes);
  }
}

TEST(Heap, GivesZeroesAgainAfterUse) {
  const auto heap = make(64 * kMiB);
  for (const std::size_t bytes : {std::size_t{4096}, 3 * kMiB}) {
    std::byte* const first = allocate(*heap, bytes);
    std::byte* const wall = allocate(*heap, 4096);
    std::memset(first, 0x5a, bytes);
    std::memset(wall, 0x77, 4096);
    ASSERT_TRUE(heap->release(first).ok());
    std::byte* const again = allocate(*heap, bytes);
    EXPECT_EQ(again, first);
    EXPECT_TRUE(isZero(again, bytes));
    EXPECT_EQ(wall[4095], std::byte{0x77});
  }
}

TEST(Heap, FillsUpAndEmptiesAgain) {
  const auto heap = make(16 * kMiB);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::byte*> all;
    while (std::byte* const memory = allocate(*heap, kMiB)) all.push_back(memory);
    EXPECT_EQ(all.size(), 16u);
    EXPECT_EQ(allocate(*heap, 1), nullptr);
    for (std::size_t i = 0; i < all.size(); i += 2) EXPECT_TRUE(heap->release(all[i]).ok());
    for (std::size_t i = 1; i < all.size(); i += 2) EXPECT_TRUE(heap->release(all[i]).ok());
    std::byte* const whole = allocate(*heap, 16 * kMiB);
    ASSERT_NE(whole, nullptr);
    EXPECT_TRUE(heap->release(whole).ok());
  }
  EXPECT_EQ(allocate(*heap, ~std::size_t{0}), nullptr);
}

TEST(Heap, TurnsDownWhatItDidNotGive) {
  const auto heap = make(16 * kMiB);
  std::byte* const memory = allocate(*heap, 8192);
  const Status inside = heap->release(memory + 4096);
  EXPECT_EQ(inside.code(), Code::InvalidArgument);
  EXPECT_TRUE(heap->release(memory).ok());
  const Status twice = heap->release(memory);
  EXPECT_EQ(twice.code(), Code::InvalidArgument);
  EXPECT_NE(twice.text().find("freed already"), std::string::npos);
}

// More than there is: an error with the figures, and nothing is taken.
TEST(Heap, LackOfMemoryIsAnErrorThatNamesTheFix) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has no address space for more than there is memory";
#endif
  const std::uint64_t left = shm::availableMemory().bytes;
  const auto heap = make((2 * left + 4 * shm::kHugePage) / shm::kHugePage * shm::kHugePage);
  const long before = residentPages();
  void* memory = nullptr;
  const Status status = heap->allocate(2 * left, &memory);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(status.code(), Code::OutOfMemory);
  for (const char* part : {"cannot allocate", "bytes left", "fix:", "weftMemFree"})
    EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
  EXPECT_LT(residentPages() - before, 1000);
  EXPECT_NE(allocate(*heap, 2 * kMiB), nullptr);
}

TEST(Heap, CostsNothingUntilItIsUsed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep a shadow of what was touched";
#endif
  const long before = residentPages();
  const auto heap = make(512 * kMiB);
  EXPECT_LT(residentPages() - before, 256);
  std::byte* const memory = allocate(*heap, 64 * kMiB);
  std::memset(memory, 1, 64 * kMiB);
  EXPECT_TRUE(heap->release(memory).ok());
  EXPECT_LT(residentPages() - before, 4096);
}

TEST(Heap, ServesManyThreads) {
  const auto heap = make(256 * kMiB);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      std::vector<std::pair<std::byte*, std::size_t>> mine;
      const auto drop = [&](std::size_t i) {
        const auto [memory, bytes] = mine[i];
        wrong[t] += memory[0] != std::byte(t + 1) || memory[bytes - 1] != std::byte(t + 1);
        wrong[t] += !heap->release(memory).ok();
        mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(i));
      };
      for (std::size_t i = 0; i < 100; ++i) {
        const std::size_t bytes = (i * 7919 + t * 104729) % (3 * kMiB) + 1;
        void* memory = nullptr;
        const bool given = heap->allocate(bytes, &memory).ok() && memory != nullptr;
        wrong[t] += !given;
        if (!given) continue;
        auto* const start = static_cast<std::byte*>(memory);
        wrong[t] += start[0] != std::byte{0} || start[bytes - 1] != std::byte{0};
        start[0] = start[bytes - 1] = std::byte(t + 1);
        mine.emplace_back(start, bytes);
        if (mine.size() > 8) drop(i % mine.size());
      }
      while (!mine.empty()) drop(0);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
  EXPECT_NE(allocate(*heap, 256 * kMiB), nullptr);
}

// A child sees and changes what its parent allocated, frees it for nobody, and allocates from a
// heap of its own.
TEST(Heap, IsTheParentsInAForkedChild) {
  shm::Heap* const heap = shm::Heap::own();
  ASSERT_NE(heap, nullptr);
  EXPECT_EQ(shm::Heap::own(), heap);
  EXPECT_EQ(shm::Heap::existing(), heap);
  std::byte* const memory = allocate(*heap, 8192);
  memory[0] = std::byte{1};
  EXPECT_FALSE(shm::Heap::isParents(memory));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool seen = memory[0] == std::byte{1} && shm::Heap::isParents(memory + 8191);
    const bool fresh =
        shm::Heap::existing() == nullptr && shm::Heap::own() != heap && shm::Heap::own();
    std::byte* const mine = fresh ? allocate(*shm::Heap::own(), 8192) : nullptr;
    const bool apart = mine != nullptr && !heap->contains(mine) && !shm::Heap::isParents(mine);
    if (mine != nullptr) mine[0] = std::byte{3};
    memory[1] = std::byte{2};
    ::_exit(seen && fresh && apart ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory[0], std::byte{1});
  EXPECT_EQ(memory[1], std::byte{2});
  EXPECT_TRUE(heap->release(memory).ok());
}

// Neither does a small address space or file size limit make it impossible, up to a point.
TEST(Heap, IsSmallerOrNoneUnderLimits) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need much address space";
#endif
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit file{256 * kMiB, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &file);
    const shm::Heap* const small = shm::Heap::own();
    const bool fits = small != nullptr && small->memory().size() <= 256 * kMiB;
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      const rlimit space{256 * kMiB, RLIM_INFINITY};
      ::setrlimit(RLIMIT_AS, &space);
      ::_exit(shm::Heap::own() == nullptr ? 0 : 1);
    }
    int status = -1;
    ::waitpid(grandchild, &status, 0);
    ::_exit(fits && status == 0 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// A process that locks its future pages must not get all of the heap at once.
TEST(Heap, StaysSparseUnderMlockall) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::mlockall(MCL_FUTURE) != 0) ::_exit(0);  // not permitted
    const long before = residentPages();
    std::unique_ptr<shm::Heap> heap;
    if (!shm::Heap::create(512 * kMiB, &heap).ok())
      ::_exit(0);  // beyond the limit of locked memory
    ::_exit(residentPages() - before < 4096 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace weft::transport
