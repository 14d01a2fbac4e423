// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/peer_processes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // they have allocators of their own

namespace {
thread_local int allocationsLeft = -1;  // then one fails; negative: none does
}  // namespace

void* operator new(std::size_t bytes) {
  if (allocationsLeft >= 0 && allocationsLeft-- == 0) throw std::bad_alloc();
  if (void* const made = std::malloc(bytes)) return made;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace weft::shm {
namespace {

mapped::PeerProcess found(pid_t pid) {
  mapped::PeerProcess process;
  process.pid = pid;
  return process;
}

// What had been found is forgotten under the lock that it was being noted under, once without end.
TEST(PeerProcesses, MayBeNotedWithoutMemory) {
  constexpr Token kName{std::byte{7}};
  int failed = 0;
  for (int at = 0; at < 6; ++at) {
    allocationsLeft = at;
    try {
      EXPECT_EQ(knownProcess(kName, found(1))->pid, 1);
    } catch (const std::bad_alloc&) {
      ++failed;
    }
    allocationsLeft = -1;
  }
  EXPECT_GE(failed, 3) << "the process, its count and its place";
  const auto one = knownProcess(kName, found(2));
  EXPECT_EQ(knownProcess(kName, found(3)), one);
}

}  // namespace
}  // namespace weft::shm

#endif
