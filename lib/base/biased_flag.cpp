// SPDX-License-Identifier: Apache-2.0
#include "base/biased_flag.h"

namespace weft::inline base {

constinit thread_local char threadMark [[gnu::tls_model("initial-exec")]] = 0;

// Whoever was favoured does not raise it from the fence on without coming here. Before that he may have.
bool BiasedFlag::raiseFirst(const void* me) {
  const std::lock_guard lock(changing_);
  if (favoured_.load(std::memory_order_relaxed) != nobody()) {
    const bool wasFavoured = favoured_.exchange(nullptr, std::memory_order_seq_cst) != nullptr;
    if (wasFavoured) heavyFence();
    if (up_.load(std::memory_order_acquire)) return false;
    const bool favours = hasHeavyFences() && ++changes_ <= kChanges;
    if (favours) up_.store(true, std::memory_order_relaxed);
    favoured_.store(favours ? me : nobody(), std::memory_order_release);
    if (favours) return true;
  }
  return !up_.exchange(true, std::memory_order_seq_cst);
}

}  // namespace weft::inline base
