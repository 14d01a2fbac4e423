// SPDX-License-Identifier: Apache-2.0
#include "tools/train/read_ahead.h"

#include <utility>

#include "tools/train/stopwatch.h"

namespace weft::train {
namespace {

constexpr size_t kAhead = 8;  // batches: enough for what a file system takes longer at times
constexpr size_t kFew =
    kAhead / 2;  // then it is time for others: not each batch wakes the thread up

}  // namespace

ReadAhead::ReadAhead(std::function<Batch(uint64_t)> make)
    : make_(std::move(make)), thread_([this] { work(); }) {}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ReadAhead::startAt(uint64_t index) {
  {
    const std::lock_guard lock(mutex_);
    ready_.clear();
    isFirst_ = true;
    next_ = index;
    ++starts_;
    fills_ = true;
  }
  changed_.notify_all();
}

Batch ReadAhead::take() {
  std::unique_lock lock(mutex_);
  if (ready_.empty()) {
    const Stopwatch waiting;
    changed_.wait(lock, [&] { return !ready_.empty(); });
    (isFirst_ ? times_.first : times_.waited) += waiting.seconds();
  }
  Made made = std::move(ready_.front());
  ready_.pop_front();
  const bool wakes = !fills_ && ready_.size() <= kFew;
  fills_ = fills_ || wakes;
  if (!std::exchange(isFirst_, false)) times_.made += made.seconds;
  lock.unlock();
  if (wakes) changed_.notify_all();
  if (made.failure) std::rethrow_exception(made.failure);
  return std::move(made.batch);
}

void ReadAhead::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || fills_; });
    if (ends_) return;
    const uint64_t index = next_++, starts = starts_;
    lock.unlock();
    Made made = makeOne(index);
    lock.lock();
    if (starts != starts_) continue;
    ready_.push_back(std::move(made));
    if (ready_.size() >= kAhead) fills_ = false;
    changed_.notify_all();
  }
}

ReadAhead::Made ReadAhead::makeOne(uint64_t index) const {
  const Stopwatch making;
  Made made;
  try {
    made.batch = make_(index);
  } catch (...) {
    made.failure = std::current_exception();
  }
  made.seconds = making.seconds();
  return made;
}

}  // namespace weft::train
