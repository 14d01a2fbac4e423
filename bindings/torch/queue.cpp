// SPDX-License-Identifier: Apache-2.0
#include "queue.h"

#include <pthread.h>

#include <stdexcept>

namespace weft::pytorch {

std::shared_ptr<Queue> Queue::make(const std::string& threadName) {
  auto queue = std::make_shared<Queue>();
  queue->name_ = threadName.substr(0, 15);
  const std::lock_guard lock(queue->mutex_);
  queue->addThread();
  return queue;
}

// Both with the lock.
void Queue::addThread() {
  threads_.emplace_back([self = shared_from_this()] { self->serve(); });
  pthread_setname_np(threads_.back().native_handle(), name_.c_str());
}

void Queue::reinforce() {
  if (inCallbacks_ == threads_.size() && !closed_) addThread();
}

void Queue::push(c10::intrusive_ptr<Call> call, std::size_t bytes) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_)
      throw std::runtime_error("this process group has been destroyed; fix: make a new one");
    lastPush_ = Clock::now();
    // A time of the past: the thread may run it at once.
    wake = eager_ || nobodyLooks() || bytes > kSmall;
    items_.push_back({std::move(call), wake ? Clock::time_point{} : lastPush_});
    if (wake) reinforce();
  }
  if (wake) forThread_.notify_one();
}

void Queue::hurry(Call&) {
  {
    const std::lock_guard lock(mutex_);
    if (items_.empty()) return;
    for (Item& item : items_) item.since = {};
    eager_ = true;
    reinforce();
  }
  forThread_.notify_one();
}

// Runs what is before `call`, and it, unless another thread is at it.
void Queue::help(Call& call) {
  std::unique_lock lock(mutex_);
  while (mayRun() && !call.ended()) {
    if (items_.front().call.get() == &call && items_.size() == 1) eager_ = false;
    runNext(lock, false);
  }
  if (!call.ended())  // another thread is at it, or at one before: then the next is for the queue's own, at once
    for (Item& item : items_) item.since = {};
  const bool more = mayRun();
  if (!items_.empty()) reinforce();
  lock.unlock();
  if (more) forThread_.notify_one();
}

void Queue::runNext(std::unique_lock<std::mutex>& lock, bool isOwn) {
  c10::intrusive_ptr<Call> call = std::move(items_.front().call);
  items_.pop_front();
  busy_ = true;
  lock.unlock();
  call->run();
  lock.lock();
  busy_ = false;
  if (closed_ && items_.empty()) idle_.notify_all();
  if (isOwn) {
    ++inCallbacks_;
    if (!items_.empty()) {
      if (call->isFuture()) reinforce();  // its callbacks may wait for one that is queued already
      forThread_.notify_one();            // another one, if there is one
    }
  }
  lock.unlock();
  call->settle();
  call.reset();  // its tensors may be the last, and want Python's lock, which who waits for this one may hold
  lock.lock();
  if (isOwn) --inCallbacks_;
}

void Queue::serve() {
  std::unique_lock lock(mutex_);
  while (!closed_ || !items_.empty()) {
    const auto now = Clock::now();
    if (mayRun() && now - items_.front().since >= kPatience) {
      eager_ = true;  // nobody came to run it
      runNext(lock, true);
    } else if (busy_ || !items_.empty() || now - lastPush_ < kAttention) {
      forThread_.wait_for(lock, kTick);
    } else {
      ++sleeping_;
      forThread_.wait(lock);
      --sleeping_;
    }
  }
}

void Queue::close(Clock::time_point until, const std::function<bool()>& giveUp) {
  std::unique_lock lock(mutex_);
  std::vector<std::thread> threads;
  threads.swap(threads_);
  if (threads.empty()) return;
  closed_ = true;
  for (Item& item : items_) item.since = {};
  forThread_.notify_all();
  const bool drained = idle_.wait_until(lock, until, [this] { return items_.empty() && !busy_; });
  lock.unlock();
  const bool ends = drained || giveUp();
  for (std::thread& thread : threads)
    if (!ends || thread.get_id() == std::this_thread::get_id())
      thread.detach();  // or a callback of the last call destroys the group
    else
      thread.join();
}

}  // namespace weft::pytorch
