// SPDX-License-Identifier: Apache-2.0
#include "queue.h"

#include <pthread.h>

#include <stdexcept>

namespace weft::pytorch {

std::shared_ptr<Queue> Queue::make(const std::string& threadName) {
  auto queue = std::make_shared<Queue>();
  queue->thread_ = std::thread([queue] { queue->serve(); });
  pthread_setname_np(queue->thread_.native_handle(), threadName.substr(0, 15).c_str());
  return queue;
}

void Queue::push(c10::intrusive_ptr<Call> call, std::size_t bytes) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_)
      throw std::runtime_error("this process group has been destroyed; fix: make a new one");
    lastPush_ = Clock::now();
    // A time of the past: the thread may run it at once.
    wake = eager_ || asleep_ || bytes > kSmall;
    items_.push_back({std::move(call), wake ? Clock::time_point{} : lastPush_});
  }
  if (wake) forThread_.notify_one();
}

void Queue::hurry(Call&) {
  {
    const std::lock_guard lock(mutex_);
    if (items_.empty()) return;
    for (Item& item : items_) item.since = {};
    eager_ = true;
  }
  forThread_.notify_one();
}

// Runs what is before `call`, and it, unless another thread is at it.
void Queue::help(Call& call) {
  std::unique_lock lock(mutex_);
  while (mayRun() && !call.ended()) {
    if (items_.front().call.get() == &call && items_.size() == 1) eager_ = false;
    runNext(lock);
  }
  if (!call.ended())  // another thread is at it, or at one before: then the next is for the queue's own, at once
    for (Item& item : items_) item.since = {};
  const bool more = mayRun();
  lock.unlock();
  if (more) forThread_.notify_one();
}

void Queue::runNext(std::unique_lock<std::mutex>& lock) {
  const c10::intrusive_ptr<Call> call = std::move(items_.front().call);
  items_.pop_front();
  busy_ = true;
  lock.unlock();
  call->run();
  lock.lock();
  busy_ = false;
  if (closed_ && items_.empty()) idle_.notify_all();
  lock.unlock();
  call->settle();
  lock.lock();
}

void Queue::serve() {
  std::unique_lock lock(mutex_);
  while (!closed_ || !items_.empty()) {
    const auto now = Clock::now();
    if (mayRun() && now - items_.front().since >= kPatience) {
      eager_ = true;  // nobody came to run it
      runNext(lock);
    } else if (busy_ || !items_.empty() || now - lastPush_ < kAttention) {
      forThread_.wait_for(lock, kTick);
    } else {
      asleep_ = true;
      forThread_.wait(lock);
      asleep_ = false;
    }
  }
}

void Queue::close(Clock::time_point until, const std::function<bool()>& giveUp) {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) return;
  closed_ = true;
  for (Item& item : items_) item.since = {};
  forThread_.notify_one();
  const bool drained = idle_.wait_until(lock, until, [this] { return items_.empty() && !busy_; });
  lock.unlock();
  const bool ends = drained || giveUp();
  if (!ends || thread_.get_id() == std::this_thread::get_id())
    thread_.detach();  // or a callback of the last call destroys the group
  else
    thread_.join();
}

}  // namespace weft::pytorch
