// SPDX-License-Identifier: Apache-2.0
#include "engine/work_stream.h"

#include <algorithm>
#include <utility>

#include "base/threads.h"

namespace weft::engine {

void EventRecord::pass() {
  const std::lock_guard lock(mutex_);
  passed_ = true;
  when_ = Clock::now();
  passedNow_.notify_all();
}

bool EventRecord::passed() const {
  const std::lock_guard lock(mutex_);
  return passed_;
}

void EventRecord::wait() const {
  std::unique_lock lock(mutex_);
  passedNow_.wait(lock, [&] { return passed_; });
}

bool EventRecord::time(Clock::time_point* when) const {
  const std::lock_guard lock(mutex_);
  *when = when_;
  return passed_;
}

std::shared_ptr<EventRecord> WorkEvent::record() {
  auto made = std::make_shared<EventRecord>();
  const std::lock_guard lock(mutex_);
  latest_ = made;
  return made;
}

std::shared_ptr<EventRecord> WorkEvent::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
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
  std::vector<std::list<Work>> nodes(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    nodes[i].push_back(std::move(pieces[i].second));
    locks.emplace_back(pieces[i].first->mutex_);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {  // without an exception
    WorkStream& stream = *pieces[i].first;
    stream.queue_.splice(stream.queue_.end(), nodes[i]);
    stream.changed_.notify_one();
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
    const Status status = withoutExceptions(work);
    lock.lock();
    running_ = false;
    if (first_.ok() && !status.ok()) first_ = status;
    if (queue_.empty()) drained_.notify_all();
  }
}

Status StreamBarrier::pass() {
  std::unique_lock lock(mutex_);
  if (--missing_ == 0) arrived_.notify_one();
  opened_.wait(lock, [this] { return open_; });
  return result_;
}

bool StreamBarrier::awaitStreams(Deadline deadline) {
  std::unique_lock lock(mutex_);
  return arrived_.wait_until(lock, deadline.at(), [this] { return missing_ == 0; });
}

void StreamBarrier::open(const Status& result) {
  const std::lock_guard lock(mutex_);
  open_ = true;
  result_ = result;
  opened_.notify_all();
}

}  // namespace weft::engine
