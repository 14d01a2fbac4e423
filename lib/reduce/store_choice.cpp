// SPDX-License-Identifier: Apache-2.0
#include "reduce/store_choice.h"

#include <algorithm>

#include "base/copy.h"
#include "base/now.h"
#include "reduce/reduce.h"

namespace weft::reduce {
namespace {

constexpr std::size_t kMostTried = 16 << 10, kLine = 64;

void copyPast(void* to, const void* from, std::size_t bytes) { copyStream(&to, 1, from, bytes); }

// Waits until all stores before it are done.
void drainStores() {
  std::atomic<int> any;
  any.exchange(1, std::memory_order_seq_cst);
}

}  // namespace

// Also the first copies, until one way has won. What went past the caches is in none of them, and
// stores through them would pay for that, which they do once only: so they are tried where an earlier
// copy has been stored through them.
StorePreference::Try StorePreference::due(const void* to, std::size_t bytes, std::size_t tried) {
  const bool suspected = isSuspected_.load(std::memory_order_relaxed);
  const std::size_t every = suspected ? patience_.load(std::memory_order_relaxed) : kTryEvery;
  const bool turn = untried_.fetch_add(bytes, std::memory_order_relaxed) >= every * tried;
  const bool past = isPastCaches();
  if (past && primed_.load(std::memory_order_relaxed) == to) return Try::Judge;
  const bool early = !past && (tries_.load(std::memory_order_relaxed) < kAgree ||
                               against_.load(std::memory_order_relaxed) != 0);
  if (!turn && !early) return Try::None;
  untried_.store(0, std::memory_order_relaxed);
  if (past) primed_.store(to, std::memory_order_relaxed);
  return past ? Try::Prime : Try::Judge;
}

void StorePreference::suspect(double throughNs) {
  if (isPastCaches() || throughNs <= kMargin * pastNs_.load(std::memory_order_relaxed)) return;
  isSuspected_.store(true, std::memory_order_relaxed);
}

void StorePreference::judge(double throughNs, double pastNs) {
  tries_.fetch_add(1, std::memory_order_relaxed);
  pastNs_.store(pastNs, std::memory_order_relaxed);
  const bool suspected = isSuspected_.exchange(false, std::memory_order_relaxed);
  const std::size_t waited = suspected ? patience_.load(std::memory_order_relaxed) : 0;
  patience_.store(std::clamp(2 * waited, kTrySuspected, kTryEvery), std::memory_order_relaxed);
  const bool past = isPastCaches(), wins = throughNs > kMargin * pastNs;
  if (wins != past && against_.fetch_add(1, std::memory_order_relaxed) + 1 < kAgree) return;
  against_.store(0, std::memory_order_relaxed);
  primed_.store(nullptr, std::memory_order_relaxed);
  pastCaches_.store(wins, std::memory_order_relaxed);
}

namespace {

// So many bytes either way; past the caches first, as such stores end by waiting for all before them.
void storeBoth(std::byte* to, const std::byte* from, std::size_t piece, StorePreference* judge) {
  const double start = nowNs();
  copyPast(to, from, piece);
  const double between = nowNs();
  copyBytes(to + piece, from + piece, piece);
  drainStores();
  const auto bytes = static_cast<double>(piece);
  if (judge != nullptr) judge->judge((nowNs() - between) / bytes, (between - start) / bytes);
}

}  // namespace

std::size_t StoreChoice::triedOf(std::size_t bytes) {
  return bytes < kLeastTried ? 0 : 2 * std::clamp(bytes / 4 / kLine * kLine, kLeast, kMostTried);
}

void StoreChoice::copy(void* to, const void* from, std::size_t bytes) {
  using Try = StorePreference::Try;
  if (bytes < kLeast || to == from) return copyBytes(to, from, bytes);
  auto* const target = static_cast<std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  const std::size_t tried = triedOf(bytes);
  Try now = Try::None;
  if (tried == 0)
    preference_.pass(bytes);
  else
    now = preference_.due(to, bytes, tried);
  if (now != Try::None)
    storeBoth(target, source, tried / 2, now == Try::Judge ? &preference_ : nullptr);
  const std::size_t done = now == Try::None ? 0 : tried;
  if (preference_.isPastCaches()) return copyPast(target + done, source + done, bytes - done);
  copyBytes(target + done, source + done, tried - done);
  copyTimed(target + tried, source + tried, bytes - tried);
}

// One of a few is. What may be tried is none of it: a try makes the next stores to the same lines slow.
void StoreChoice::copyTimed(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::uint32_t kTimeEvery = 8;
  const bool timed =
      bytes >= kLeast && copies_.fetch_add(1, std::memory_order_relaxed) % kTimeEvery == 0;
  const double start = timed ? nowNs() : 0;
  copyBytes(to, from, bytes);
  if (timed) preference_.suspect((nowNs() - start) / static_cast<double>(bytes));
}

}  // namespace weft::reduce
