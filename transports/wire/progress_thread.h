// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace weft::wire {

// Who makes progress: the application while it owns progress, else a thread. So a peer that needs
// this rank gets on while this one computes, and the calls of the application take no lock but the
// one in acquireProgress().
//
// The thread leaves a busy application alone: it takes over once the application has been away for
// one of its intervals, or at once where that hands over to sleep. Then it sleeps itself, until there
// is progress to make; of a wire that cannot say when, it looks now and then, less and less often
// while nothing happens. It starts when it is first needed; without threads there is no progress while
// the application is away.
class ProgressThread {
 public:
  using Milliseconds = std::chrono::milliseconds;
  // Makes some, and says whether there was any.
  using Progress = std::function<bool()>;
  // Before a sleep: which descriptors will be readable as soon as there is progress to make, and how
  // long the thread may sleep at most; zero: there may be some now. `waits`: the application has handed
  // over and sleeps; else only peers may need progress.
  using Arm = std::function<Milliseconds(std::vector<pollfd>*, bool waits)>;

  // Both outlive this object, or stop(). Without `arm` the thread looks now and then.
  explicit ProgressThread(Progress progress, Arm arm = {})
      : progress_(std::move(progress)), arm_(std::move(arm)) {}
  ~ProgressThread() { stop(); }

  // The application owns progress at first. One thread at a time, as `progress`.
  void acquireProgress();
  void releaseProgress();
  // As releaseProgress(), but at once. False: there is no thread, or none that knows when to look,
  // and the application goes on.
  bool handOver();
  // Would handOver() do? Starts the thread.
  bool servesSleepers();
  // For good: the application owns progress from now on. Returns when the thread has ended.
  void stop();

 private:
  void start();
  void serve();
  bool look();
  void sleepUntilNews(std::unique_lock<std::mutex>& lock, bool moved);
  // What it sleeps on is in descriptors_. True: one of them is readable.
  bool sleep(std::unique_lock<std::mutex>& lock, Milliseconds most);
  void ring();

  const Progress progress_;
  const Arm arm_;
  std::mutex mutex_;  // of progress, while the application is away
  bool stopping_ = false;
  bool armed_ = false;  // the thread sleeps on descriptors as they were
  std::atomic<bool> owned_{true};
  std::atomic<bool> hurry_{false};
  std::atomic<std::uint32_t> visits_{0};

  // Of the application.
  bool started_ = false;
  bool outdated_ =
      false;  // the thread may sleep on descriptors whose news the application has taken

  // Of the thread.
  std::uint32_t inVain_ = 0;
  std::vector<pollfd> descriptors_;  // the first is the bell

  Fd bell_;
  std::thread thread_;
};

}  // namespace weft::wire
