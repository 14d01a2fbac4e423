// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/asymmetric_fence.h"

namespace weft::inline base {

// Who a thread is: an address that only it has while it lives.
extern constinit thread_local char threadMark [[gnu::tls_model("initial-exec")]];
inline const void* thisThread() { return &threadMark; }

// A flag that one thread at a time has up. The one that had it last raises it again without a locked
// instruction; when another one comes, that takes some microseconds, and after a few such changes none
// is favoured any more. Any thread.
class BiasedFlag {
 public:
  // False: it is up already.
  [[gnu::always_inline]] bool raise() {
    const void* const me = thisThread();
    const void* const favoured = favoured_.load(std::memory_order_acquire);
    if (favoured == nobody()) return !up_.exchange(true, std::memory_order_seq_cst);
    if (favoured != me) return raiseFirst(me);
    if (up_.load(std::memory_order_relaxed)) return false;
    up_.store(true, std::memory_order_relaxed);
    lightFence();
    if (favoured_.load(std::memory_order_relaxed) == me) [[likely]]
      return true;
    lower();
    return raiseFirst(me);
  }
  void lower() { up_.store(false, std::memory_order_release); }
  // By whom it is seen that what he stored before a heavyFence() is seen by those who raise it later.
  bool isUp() const { return up_.load(std::memory_order_seq_cst); }

 private:
  static constexpr std::uint32_t kChanges = 8;
  static const void* nobody() { return &kNobody; }
  static constexpr char kNobody = 0;

  bool raiseFirst(const void* me);

  std::atomic<bool> up_{false};
  std::atomic<const void*> favoured_{nullptr};  // null: whoever comes next
  std::mutex changing_;
  std::uint32_t changes_ = 0;
};

}  // namespace weft::inline base
