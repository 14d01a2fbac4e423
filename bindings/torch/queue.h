// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "call.h"

namespace weft::pytorch {

// Runs calls one after the other in their order, as a communicator wants it. A thread of its own does that for calls
// that nobody waits for; where somebody waits, his thread runs them itself, which saves two changes of threads: most
// of the time that a call of a few bytes takes.
//   To wake the thread for a call that its caller is about to run anyway costs both of them a core. So while callers
// have waited for their last small calls at once, the thread looks by itself, each kTick, for calls older than
// kPatience; once it found one it is woken for each, as large ones always are.
//   A future's callbacks run on the thread that has run the call, and may wait for the future of a later one. So while
// all threads of the queue are in callbacks, the next call brings another one: as many as callbacks wait in each other.
class Queue final : public Executor, public std::enable_shared_from_this<Queue> {
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
  void runNext(std::unique_lock<std::mutex>& lock, bool isOwn);
  void addThread();
  void reinforce();
  bool nobodyLooks() const { return sleeping_ + inCallbacks_ == threads_.size(); }
  bool mayRun() const { return !busy_ && !items_.empty(); }

  mutable std::mutex mutex_;
  std::condition_variable forThread_;  // something to do
  std::condition_variable idle_;       // nobody runs a call any more
  std::deque<Item> items_;
  bool busy_ = false;  // somebody runs one
  bool eager_ = true;  // wake the thread for each call
  bool closed_ = false;
  Clock::time_point lastPush_;
  std::string name_;
  std::vector<std::thread> threads_;
  std::size_t sleeping_ = 0;     // of them, do not look by themselves
  std::size_t inCallbacks_ = 0;  // and run callbacks
};

}  // namespace weft::pytorch
