// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/biased_flag.h"
#include "base/deadline.h"

namespace weft::engine {

// The order in which a communicator's calls run: that in which they were issued, whichever thread
// or stream runs them. A call takes a ticket when it is issued and runs when all before it are
// done. Without contention neither costs a lock.
class Turns {
 public:
  // One thread issues at a time; false if another is at it (or runs a call of its own) right now,
  // or if nothing is issued any more.
  [[gnu::always_inline]] bool beginIssue() {
    if (!issuing_.raise()) return false;
    if (!closed_.load(std::memory_order_seq_cst)) return true;
    endIssue();
    return false;
  }
  void endIssue() { issuing_.lower(); }
  // Nothing is issued from now on. Any thread.
  void close() {
    closed_.store(true, std::memory_order_seq_cst);
    heavyFence();
  }
  bool isClosed() const { return closed_.load(std::memory_order_seq_cst); }
  // Only between beginIssue and endIssue.
  std::uint64_t take() {
    const std::uint64_t ticket = issued_.load(std::memory_order_relaxed);
    issued_.store(ticket + 1, std::memory_order_release);
    return ticket;
  }

  // False if the deadline passes first.
  bool await(std::uint64_t ticket, Deadline deadline) {
    return isTurn(ticket) || awaitSlowly(ticket, deadline);
  }
  bool isTurn(std::uint64_t ticket) const {
    return current_.load(std::memory_order_acquire) == ticket;
  }
  // Out of turn only if the communicator is broken, when no call runs any more: turns never go
  // back.
  void done(std::uint64_t ticket) {
    std::uint64_t now = current_.load(std::memory_order_relaxed);
    while (now <= ticket &&
           !current_.compare_exchange_weak(now, ticket + 1, std::memory_order_seq_cst)) {
    }
    if (waiters_.load(std::memory_order_seq_cst) != 0) notify();
  }
  // The same before endIssue: no later ticket is out, so no call waits for this one's end.
  void doneWhileIssuing(std::uint64_t ticket) {
    current_.store(ticket + 1, std::memory_order_release);
  }

  bool allDone() const { return isTurn(issued_.load(std::memory_order_acquire)); }
  // No call runs nor is being issued.
  bool isIdle() const { return !issuing_.isUp() && allDone(); }
  // Until everything issued so far is done.
  bool awaitAll(Deadline deadline) {
    return await(issued_.load(std::memory_order_acquire), deadline);
  }

 private:
  bool awaitSlowly(std::uint64_t ticket, Deadline deadline);
  void notify();

  BiasedFlag issuing_;
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> issued_{0};
  std::atomic<std::uint64_t> current_{0};
  std::atomic<std::uint32_t> waiters_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace weft::engine
