// SPDX-License-Identifier: Apache-2.0
#include "base/no_fork.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>
#include <vector>

namespace weft {
namespace {

// A child runs `body` and must end with 0; one that hangs is ended.
template <class Body>
int forked(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    // Past ThreadSanitizer, which would miss the parent's threads.
    ::syscall(SYS_exit_group, body());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(NoFork, AForkWaitsForIt) {
  std::atomic<bool> over{false};
  std::promise<void> began;
  std::thread holder([&] {
    const NoFork noFork;
    began.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    over = true;
  });
  began.get_future().wait();
  EXPECT_EQ(forked([&] { return over ? 0 : 1; }), 0);
  holder.join();
}

TEST(NoFork, TheThreadThatHasItMayFork) {
  const NoFork noFork;
  EXPECT_EQ(forked([] {
              const NoFork inside;
              return 0;
            }),
            0);
  EXPECT_EQ(forked([] { return 0; }), 0);
}

TEST(ForkSafeMutex, IsFreeInEveryChild) {
  ForkSafeMutex mutex;
  std::atomic<bool> over{false};
  std::thread busy([&] {
    while (!over) {
      const std::lock_guard lock(mutex);
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(forked([&] {
                const std::lock_guard lock(mutex);
                return 0;
              }),
              0);
  over = true;
  busy.join();
}

struct Counted {
  Counted() { ++made(); }
  static std::atomic<int>& made() {
    static std::atomic<int> count{0};
    return count;
  }
};

TEST(ProcessWide, IsMadeOnce) {
  std::vector<Counted*> seen(8);
  std::vector<std::thread> threads;
  for (Counted*& one : seen) threads.emplace_back([&one] { one = &processWide<Counted>(); });
  for (std::thread& thread : threads) thread.join();
  for (const Counted* one : seen) EXPECT_EQ(one, seen[0]);
  EXPECT_EQ(Counted::made(), 1);
}

}  // namespace
}  // namespace weft
