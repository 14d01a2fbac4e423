// SPDX-License-Identifier: Apache-2.0
// Batches that are prepared on a thread of their own before they are asked for.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "tools/train/batch.h"

namespace weft::train {

class ReadAhead {
 public:
  // `make` gives batch 0, 1, ... and is called on the thread, in this order. So which batch is which does not depend
  // on when it is made.
  explicit ReadAhead(std::function<Batch(uint64_t index)> make);
  ~ReadAhead();  // waits for the batch that is being made
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // The batches from here on are asked for next.
  void startAt(uint64_t index);
  // The next batch. Throws what making it threw.
  Batch take();

  // In seconds. The first batch, and the first after startAt(), is ahead of nothing, and counts apart.
  struct Times {
    double made = 0;    // that making the batches took that were taken since
    double waited = 0;  // that take() waited for those
    double first = 0;   // that take() waited for a first one
  };
  const Times& times() const { return times_; }

 private:
  struct Made {
    Batch batch = {};
    std::exception_ptr failure = {};
    double seconds = 0;
  };

  void work();
  Made makeOne(uint64_t index) const;

  const std::function<Batch(uint64_t)> make_;
  Times times_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Made> ready_;
  bool isFirst_ = true;  // what is taken next
  uint64_t next_ = 0;    // to be made
  uint64_t starts_ = 0;  // how often startAt() was called: what was being made then is of no use
  bool fills_ = true;    // the thread is to make batches until there are enough
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace weft::train
