// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace weft::wire {

// Who makes progress: the application while it owns progress, else a thread which polls now and
// then. So a peer that needs this rank gets on while this one computes, and the calls of the
// application take no lock but the one in acquireProgress().
//
// The thread leaves a busy application alone: it takes over once the application has been away for
// one of its intervals, and looks less and less often while nothing happens. It starts with the
// first releaseProgress(); without threads there is no progress while the application is away.
class ProgressThread {
 public:
  // `progress` makes some, and says whether there was any. It outlives this object, or stop().
  explicit ProgressThread(std::function<bool()> progress) : progress_(std::move(progress)) {}
  ~ProgressThread() { stop(); }

  // The application owns progress at first. One thread at a time, as `progress`.
  void acquireProgress();
  void releaseProgress();
  // For good: the application owns progress from now on. Returns when the thread has ended.
  void stop();

 private:
  void start();
  void serve();
  bool look();

  const std::function<bool()> progress_;
  std::mutex mutex_;  // of progress, while the application is away
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::atomic<bool> owned_{true};
  std::atomic<std::uint32_t> visits_{0};
  bool started_ = false;
  std::thread thread_;
};

}  // namespace weft::wire
