// SPDX-License-Identifier: Apache-2.0
#include "call.h"

#include <stdexcept>
#include <string>

namespace weft::pytorch {

Call::Call(int rank, const Title& title, const Tensors& inputs, Tensors outputs,
           std::shared_ptr<Executor> executor, Body body)
    : Work(rank, title.type, title.range, inputs),
      title_(title),
      outputs_(std::move(outputs)),
      executor_(std::move(executor)),
      body_(std::move(body)) {}

void Call::run() noexcept {
  std::exception_ptr error;
  try {
    body_(*this);
  } catch (...) {
    error = std::current_exception();
  }
  body_ = nullptr;  // and with it the tensors that it holds
  finish(error);
}

void Call::end(const std::exception_ptr& error) {
  finish(error);
  settle();
}

bool Call::ended() const {
  const std::lock_guard lock(mutex_);
  return completed_;
}

bool Call::isFuture() const {
  const std::lock_guard lock(mutex_);
  return future_ != nullptr;
}

bool Call::isCompleted() {
  if (ended()) return true;
  executor_->hurry(*this);
  return ended();
}

int Call::sourceRank() const { return source_; }

Tensors Call::result() {
  if (!ended())
    throw std::runtime_error(std::string("the result of ") + title_.range +
                             " was asked for before it had finished; fix: call wait() first");
  return outputs_;
}

// A forked child has none of the threads that bring calls to their end, nor ever gets a lock that one held.
void Call::refuseInChild() {
  if (getpid() == process_) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock && completed_) return;
  throw std::runtime_error(std::string(title_.range) +
                           " was begun by the process that this one was forked from; fix: wait for "
                           "it there");
}

bool Call::wait(Milliseconds timeout) {
  refuseInChild();
  const auto until = std::chrono::steady_clock::now() + timeout;
  if (timeout == kNoTimeout) {
    executor_->help(*this);
    if (const auto deadline = executor_->deadline(*this); !awaitEnd(deadline))
      executor_->expire(*this);
    awaitEnd(std::chrono::steady_clock::time_point::max());
  } else {
    executor_->hurry(*this);
    if (!awaitEnd(until))
      throw std::runtime_error(
          std::string(title_.range) + " has not finished within the " +
          std::to_string(timeout.count()) +
          " ms that wait() was given, and goes on; fix: give wait() more time, or none for "
          "that of the process group");
  }
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

void Call::abort() {
  throw std::runtime_error(
      std::string(title_.range) +
      " cannot be aborted by itself; fix: destroy_process_group() ends all calls of a group");
}

bool Call::awaitEnd(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  const auto done = [this] { return completed_; };
  if (until != std::chrono::steady_clock::time_point::max())
    return cv_.wait_until(lock, until, done);
  cv_.wait(lock, done);
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> Call::getFuture() {
  executor_->hurry(*this);  // a callback may be all that waits for it
  bool done = false;
  {
    const std::lock_guard lock(mutex_);
    if (!future_)
      future_ =
          c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    done = completed_;
  }
  if (done) settle();
  return future_;
}

void Call::settle() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(mutex_);
    if (!future_ || settled_) return;
    settled_ = true;
    future = future_;
  }
  if (exception_)
    future->setError(exception_);
  else
    future->markCompleted(c10::IValue(outputs_));
}

}  // namespace weft::pytorch
