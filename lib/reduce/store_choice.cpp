// SPDX-License-Identifier: Apache-2.0
#include "reduce/store_choice.h"

#include <algorithm>

#include "base/copy.h"
#include "reduce/reduce.h"

namespace weft::reduce {

// Also the first stores, until one way has won, and those that are to confirm a try. What went past the
// caches is in none of them, and a store through them would pay for that, which it does once only: so it is
// tried where the one before has gone through them.
StorePreference::Try StorePreference::due(const void* to, std::size_t bytes) {
  const bool suspected = isSuspected_.load(std::memory_order_relaxed);
  const std::size_t every = suspected ? patience_.load(std::memory_order_relaxed) : kTryEvery;
  const bool turn = untried_.fetch_add(bytes, std::memory_order_relaxed) >= every * bytes;
  const bool past = isPastCaches();
  const void* const primed = past ? primed_.load(std::memory_order_relaxed) : nullptr;
  if (primed == to) return Try::Judge;
  const bool confirms = against_.load(std::memory_order_relaxed) != 0 && primed == nullptr;
  const bool early = confirms || (!past && tries_.load(std::memory_order_relaxed) < kAgree);
  if (!turn && !early) return Try::None;
  untried_.store(0, std::memory_order_relaxed);
  if (past) primed_.store(to, std::memory_order_relaxed);
  return past ? Try::Prime : Try::Judge;
}

void StorePreference::suspect(double throughNs) {
  if (isPastCaches() || throughNs <= margin_ * pastNs_.load(std::memory_order_relaxed)) return;
  isSuspected_.store(true, std::memory_order_relaxed);
}

void StorePreference::judge(double throughNs, double pastNs) {
  tries_.fetch_add(1, std::memory_order_relaxed);
  pastNs_.store(pastNs, std::memory_order_relaxed);
  const bool suspected = isSuspected_.exchange(false, std::memory_order_relaxed);
  const std::size_t waited = suspected ? patience_.load(std::memory_order_relaxed) : 0;
  patience_.store(std::clamp(2 * waited, kTrySuspected, kTryEvery), std::memory_order_relaxed);
  primed_.store(nullptr, std::memory_order_relaxed);
  const bool past = isPastCaches(), wins = throughNs > margin_ * pastNs;
  if (wins != past && against_.fetch_add(1, std::memory_order_relaxed) + 1 < kAgree) return;
  against_.store(0, std::memory_order_relaxed);
  pastCaches_.store(wins, std::memory_order_relaxed);
}

void StoreChoice::copy(void* to, const void* from, std::size_t bytes) {
  if (to == from) return;
  store(to, bytes,
        [=](bool past) { past ? copyStream(&to, 1, from, bytes) : copyBytes(to, from, bytes); });
}

}  // namespace weft::reduce
