// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"

namespace weft {

// A point in a stream that others can wait for. Recorded again, it moves. Shared by its handle and
// the work that refers to it, so it may be destroyed while work waits for it. Any thread.
class WorkEvent {
 public:
  using Clock = std::chrono::steady_clock;

  std::uint64_t beginRecord();           // when the record is queued; returns its ticket
  void endRecord(std::uint64_t ticket);  // when the stream gets there
  std::uint64_t latest() const;          // ticket of the most recent record, 0 = never recorded
  bool passed(std::uint64_t ticket) const;
  void wait(std::uint64_t ticket) const;
  // When the most recent record was passed. False if there is none yet.
  bool time(Clock::time_point* when) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable passedOne_;
  std::uint64_t recorded_ = 0;
  std::uint64_t passed_ = 0;
  Clock::time_point when_{};
};

// An in-order queue with a worker thread. After an error the queued work still runs (operations on
// a broken communicator fail at once); the first error is kept until synchronize() reports it. Any
// thread.
class WorkStream {
 public:
  using Work = std::function<Status()>;

  WorkStream();
  ~WorkStream();  // runs what is queued, then ends the worker
  WorkStream(const WorkStream&) = delete;
  WorkStream& operator=(const WorkStream&) = delete;

  void enqueue(Work work);
  // One piece of work for each of several streams, at once: whatever else is queued by whomever
  // comes before all of them or after all of them.
  static void enqueueTogether(std::vector<std::pair<WorkStream*, Work>> pieces);
  Status synchronize();
  // Is everything done? If so *first is the first error since synchronize(), which it does not
  // clear.
  bool query(Status* first) const;

 private:
  void work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable drained_;
  std::deque<Work> queue_;
  bool running_ = false;  // the worker is inside a work item
  bool ending_ = false;
  Status first_;
  std::thread worker_;
};

}  // namespace weft
