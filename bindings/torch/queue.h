// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "call.h"

namespace weft::pytorch {

// Runs calls one after the other in their order, as a communicator wants it. A thread of its own does that for calls
// that nobody waits for; where somebody waits, his thread runs them itself, which saves two changes of threads: most
// of the time that a call of a few bytes takes.
//   To wake the thread for a call that its caller is about to run anyway costs both of them a core. So while callers
// have waited for their last small calls at once, the thread looks by itself, each kTick, for calls older than
// kPatience; once it found one it is woken for each, as large ones always are.
class Queue final : public Executor {
 public:
  // With its thread, which lives until close().
  static std::shared_ptr<Queue> make(const std::string& threadName);
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void push(c10::intrusive_ptr<Call> call, std::size_t bytes);
  // Lets queued calls end, until then; after that `giveUp` is called, which makes them fail. Where it cannot, it returns
  // false, and the thread is left to itself.
  void close(std::chrono::steady_clock::time_point until, const std::function<bool()>& giveUp);

  void help(Call&) override;
  void hurry(Call&) override;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kPatience{200};
  static constexpr std::chrono::microseconds kTick{500};
  static constexpr std::chrono::milliseconds kAttention{
      10};  // so long after the last call it goes on looking
  static constexpr std::size_t kSmall = 32 * 1024;  // bytes

  struct Item {
    c10::intrusive_ptr<Call> call;
    Clock::time_point since;
  };

  void serve();
  void runNext(std::unique_lock<std::mutex>& lock);
  bool mayRun() const { return !busy_ && !items_.empty(); }

  mutable std::mutex mutex_;
  std::condition_variable forThread_;  // something to do
  std::condition_variable idle_;       // nobody runs a call any more
  std::deque<Item> items_;
  bool busy_ = false;    // somebody runs one
  bool eager_ = true;    // wake the thread for each call
  bool asleep_ = false;  // it does not look by itself
  bool closed_ = false;
  Clock::time_point lastPush_;
  std::thread thread_;
};

}  // namespace weft::pytorch
