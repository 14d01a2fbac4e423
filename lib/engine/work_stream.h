// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"

namespace weft::engine {

// One recording of an event: a point in a stream that is passed once. Any thread.
class EventRecord {
 public:
  using Clock = std::chrono::steady_clock;

  void pass();  // the stream gets there
  bool passed() const;
  void wait() const;
  // When it was passed; false if it is not yet.
  bool time(Clock::time_point* when) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable passedNow_;
  bool passed_ = false;
  Clock::time_point when_{};
};

// A point in a stream that others can wait for. Recorded again, it moves, but whoever waits goes on
// to wait for the record that was the latest when the wait began. Any thread.
class WorkEvent {
 public:
  // A new one, which is the latest from now on.
  std::shared_ptr<EventRecord> record();
  // Null if there is none.
  std::shared_ptr<EventRecord> latest() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<EventRecord> latest_;
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
  // Queues one piece of work on each of several streams, atomically: other work comes before all of
  // them or after all of them. An exception leaves none queued.
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
  std::list<Work> queue_;
  bool running_ = false;  // the worker is inside a work item
  bool ending_ = false;
  Status first_;
  std::thread worker_;
};

// A barrier at which streams wait for work that is done elsewhere: they arrive, the work is done,
// and all go on with its result. Used once. Any thread.
class StreamBarrier {
 public:
  explicit StreamBarrier(std::size_t streams) : missing_(streams) {}

  // Called by a stream: waits until the work is done, and returns how it ended.
  Status pass();

  // Called by whoever runs the work: false if the deadline passes before all streams are here.
  bool awaitStreams(Deadline deadline);
  void open(const Status& result);

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable opened_;
  std::size_t missing_;
  bool open_ = false;
  Status result_;
};

}  // namespace weft::engine
