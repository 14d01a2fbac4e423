// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/progress_thread.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "base/log.h"
#include "base/threads.h"

namespace weft::wire {
namespace {

// A look costs a few microseconds of a core, so that at the longest interval they are lost in the
// noise; at the shortest a protocol of several steps between two hosts gets on.
constexpr std::chrono::milliseconds kShortest{2};
constexpr std::chrono::milliseconds kLongest{16};
constexpr int kQuiet = 16;   // polls in a row without an event, then nothing more is expected
constexpr int kMost = 1024;  // polls in one look

}  // namespace

void ProgressThread::acquireProgress() {
  owned_.store(true, std::memory_order_relaxed);
  const std::lock_guard theThreadIsOut(mutex_);
}

void ProgressThread::releaseProgress() {
  visits_.fetch_add(1, std::memory_order_relaxed);
  owned_.store(false, std::memory_order_release);
  if (!started_) [[unlikely]]
    start();
}

void ProgressThread::start() {
  started_ = true;
  const SignalsBlocked blocked;
  try {
    thread_ = std::thread(&ProgressThread::serve, this);
  } catch (const std::exception& problem) {
    logWarn("no thread for progress between calls (", problem.what(),
            "): peers may have to wait for the next call here; fix: raise the limit of threads "
            "(ulimit -u)");
  }
}

void ProgressThread::stop() {
  acquireProgress();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ProgressThread::serve() {
  ::pthread_setname_np(::pthread_self(), "weft-progress");
  std::unique_lock lock(mutex_);
  std::uint32_t seen = visits_.load(std::memory_order_relaxed) - 1;
  std::chrono::milliseconds interval = kShortest;
  while (!stopping_) {
    const std::uint32_t visits = visits_.load(std::memory_order_relaxed);
    const bool away = !owned_.load(std::memory_order_acquire);
    const bool moved = away && visits == seen && look();
    interval = !away || visits != seen || moved ? kShortest : std::min(2 * interval, kLongest);
    seen = visits;
    stopped_.wait_for(lock, interval);
  }
}

// Ends early when the application comes back.
bool ProgressThread::look() {
  bool any = false;
  int quiet = 0;
  for (int i = 0; i < kMost && quiet < kQuiet && !owned_.load(std::memory_order_relaxed); ++i) {
    const bool moved = progress_();
    any |= moved;
    quiet = moved ? 0 : quiet + 1;
  }
  return any;
}

}  // namespace weft::wire
