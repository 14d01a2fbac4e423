// SPDX-License-Identifier: Apache-2.0
#include "engine/work_stream.h"

#include <algorithm>
#include <utility>

#include "base/threads.h"

namespace weft {
std::uint64_t WorkEvent::beginRecord() {
  const std::lock_guard lock(mutex_);
  return ++recorded_;
}

void WorkEvent::endRecord(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  if (ticket <= passed_) return;
  passed_ = ticket;
  when_ = Clock::now();
  passedOne_.notify_all();
}

std::uint64_t WorkEvent::latest() const {
  const std::lock_guard lock(mutex_);
  return recorded_;
}

bool WorkEvent::passed(std::uint64_t ticket) const {
  const std::lock_guard lock(mutex_);
  return passed_ >= ticket;
}

void WorkEvent::wait(std::uint64_t ticket) const {
  std::unique_lock lock(mutex_);
  passedOne_.wait(lock, [&] { return passed_ >= ticket; });
}

bool WorkEvent::time(Clock::time_point* when) const {
  const std::lock_guard lock(mutex_);
  if (recorded_ == 0 || passed_ < recorded_) return false;
  *when = when_;
  return true;
}

WorkStream::WorkStream() {
  const SignalsBlocked blocked;
  worker_ = std::thread([this] { work(); });
}

WorkStream::~WorkStream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_one();
  }
  worker_.join();
}

void WorkStream::enqueue(Work work) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  changed_.notify_one();
}

void WorkStream::enqueueTogether(std::vector<std::pair<WorkStream*, Work>> pieces) {
  std::ranges::sort(pieces, {}, [](const auto& piece) { return piece.first; });  // for all the same
  std::vector<std::unique_lock<std::mutex>> locks;
  for (const auto& [stream, work] : pieces) locks.emplace_back(stream->mutex_);
  for (auto& [stream, work] : pieces) {
    stream->queue_.push_back(std::move(work));
    stream->changed_.notify_one();
  }
}

Status WorkStream::synchronize() {
  std::unique_lock lock(mutex_);
  drained_.wait(lock, [this] { return queue_.empty() && !running_; });
  return std::exchange(first_, {});
}

bool WorkStream::query(Status* first) const {
  const std::lock_guard lock(mutex_);
  *first = first_;
  return queue_.empty() && !running_;
}

void WorkStream::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !queue_.empty() || ending_; });
    if (queue_.empty()) return;
    const Work work = std::move(queue_.front());
    queue_.pop_front();
    running_ = true;
    lock.unlock();
    const Status status = work();
    lock.lock();
    running_ = false;
    if (first_.ok() && !status.ok()) first_ = status;
    if (queue_.empty()) drained_.notify_all();
  }
}

}  // namespace weft
