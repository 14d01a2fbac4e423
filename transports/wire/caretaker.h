// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace weft {

// Whose turn it is to make progress: the application's while it attends, else that of a thread
// which looks now and then. So a peer that needs this rank gets on while this one computes, and the
// calls of the application take no lock but the one in attend().
//
// The thread leaves a busy application alone: it takes over once the application has been away for
// one of its intervals, and looks less and less often while nothing happens. It starts with the
// first leave(); without threads there is no progress while the application is away.
class Caretaker {
 public:
  // `progress` makes some, and says whether there was any. It outlives the caretaker, or stop().
  explicit Caretaker(std::function<bool()> progress) : progress_(std::move(progress)) {}
  ~Caretaker() { stop(); }

  // New ones are attended. One thread at a time, as progress.
  void attend();
  void leave();
  // For good: attended from now on. Returns when the thread has ended.
  void stop();

 private:
  void start();
  void serve();
  bool look();

  const std::function<bool()> progress_;
  std::mutex mutex_;  // of progress, if nobody attends
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::atomic<bool> attended_{true};
  std::atomic<std::uint32_t> visits_{0};
  bool started_ = false;
  std::thread thread_;
};

}  // namespace weft
