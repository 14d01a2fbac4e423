// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/progress_thread.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>

#include "base/log.h"
#include "base/threads.h"

namespace weft::wire {
namespace {

// A look costs a few microseconds of a core, so that at the longest interval they are lost in the
// noise; at the shortest a protocol of several steps between two hosts gets on.
constexpr std::chrono::milliseconds kShortest{2};
constexpr std::chrono::milliseconds kLongest{16};
constexpr std::chrono::milliseconds kForEver{-1};
constexpr int kQuiet = 16;   // polls in a row without an event, then nothing more is expected
constexpr int kMost = 1024;  // polls in one look
// A long message wakes the thread for each of its parts; a descriptor that wakes it more often than
// that for nothing is broken, and is looked at now and then.
constexpr std::uint32_t kMostInVain = 1 << 15;
constexpr std::size_t kMostDescriptors = 64;

}  // namespace

void ProgressThread::acquireProgress() {
  owned_.store(true, std::memory_order_relaxed);
  const std::lock_guard theThreadIsOut(mutex_);
  outdated_ = armed_;
}

void ProgressThread::releaseProgress() {
  visits_.fetch_add(1, std::memory_order_relaxed);
  hurry_.store(false, std::memory_order_relaxed);
  owned_.store(false, std::memory_order_release);
  if (!started_) [[unlikely]]
    start();
  if (outdated_) ring();
}

bool ProgressThread::servesSleepers() {
  if (!arm_) return false;
  if (!started_) start();
  return thread_.joinable();
}

bool ProgressThread::handOver() {
  if (!servesSleepers()) return false;
  hurry_.store(true, std::memory_order_relaxed);
  owned_.store(false, std::memory_order_release);
  ring();
  return true;
}

void ProgressThread::ring() {
  outdated_ = false;
  (void)::eventfd_write(bell_.get(), 1);
}

void ProgressThread::start() {
  started_ = true;
  const SignalsBlocked blocked;
  try {
    bell_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!bell_) throw std::system_error(errno, std::system_category(), "eventfd");
    descriptors_.reserve(kMostDescriptors);  // the thread allocates nothing
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
  if (!thread_.joinable()) return;
  ring();
  thread_.join();
}

void ProgressThread::serve() {
  ::pthread_setname_np(::pthread_self(), "weft-progress");
  std::unique_lock lock(mutex_);
  std::uint32_t seen = visits_.load(std::memory_order_relaxed) - 1;
  std::chrono::milliseconds interval = kShortest;
  while (!stopping_) {
    const bool away = !owned_.load(std::memory_order_acquire);
    const std::uint32_t visits = visits_.load(std::memory_order_relaxed);
    const bool takesOver = away && (visits == seen || hurry_.load(std::memory_order_relaxed));
    const bool moved = takesOver && look();
    interval = !away || visits != seen || moved ? kShortest : std::min(2 * interval, kLongest);
    seen = visits;
    descriptors_.assign(1, {bell_.get(), POLLIN, 0});
    if (takesOver && arm_)
      sleepUntilNews(lock, moved);
    else  // who never leaves rings to hand over
      sleep(lock, visits != 0 ? interval : kForEver);
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

// What comes after `arm_` makes a descriptor readable; what the application does afterwards, who has
// come back in the meantime, does not: so it rings when it leaves again.
void ProgressThread::sleepUntilNews(std::unique_lock<std::mutex>& lock, bool moved) {
  if (owned_.load(std::memory_order_relaxed)) return;
  if (moved) inVain_ = 0;
  const Milliseconds most = arm_(&descriptors_, hurry_.load(std::memory_order_relaxed));
  armed_ = most > Milliseconds::zero();
  if (armed_ && !sleep(lock, most))
    inVain_ = 0;
  else if (++inVain_ > kMostInVain) {
    descriptors_.resize(1);
    sleep(lock, kShortest);
  }
  armed_ = false;
}

bool ProgressThread::sleep(std::unique_lock<std::mutex>& lock, Milliseconds most) {
  lock.unlock();
  const int ready =
      ::poll(descriptors_.data(), descriptors_.size(), static_cast<int>(most.count()));
  eventfd_t rings = 0;
  const bool rung =
      ready > 0 && descriptors_[0].revents != 0 && ::eventfd_read(bell_.get(), &rings) == 0;
  lock.lock();
  return ready < 0 || ready > (rung ? 1 : 0);
}

}  // namespace weft::wire
