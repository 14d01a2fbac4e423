// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "base/deadline.h"
#include "base/status.h"

namespace weft {

// A point where streams wait for work that is done elsewhere: they arrive, the work is done, and
// all go on with its result. Used once. Any thread.
class Junction {
 public:
  explicit Junction(std::size_t streams) : missing_(streams) {}

  // Of a stream: waits until the work is done, and returns how it ended.
  Status pass();

  // Of the worker: false if the deadline passes before all streams are here.
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

}  // namespace weft
