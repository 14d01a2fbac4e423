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
  throughNs_.store(throughNs, std::memory_order_relaxed);
  if (isPastCaches() || throughNs <= margin_ * pastNs_.load(std::memory_order_relaxed)) return;
  isSuspected_.store(true, std::memory_order_relaxed);
}

void StorePreference::judge(double throughNs, double pastNs) {
  tries_.fetch_add(1, std::memory_order_relaxed);
  pastNs_.store(pastNs, std::memory_order_relaxed);
  const bool suspected = isSuspected_.exchange(false, std::memory_order_relaxed);
  const std::size_t waited = suspected ? patience_.load(std::memory_order_relaxed) : 0;
  patience_.store(std::clamp(2 * waited, kTrySuspected, kTryEvery), std::memory_order_relaxed);
  const bool past = isPastCaches(), wins = throughNs > margin_ * pastNs;
  if (wins != past && against_.fetch_add(1, std::memory_order_relaxed) + 1 < kAgree) return;
  against_.store(0, std::memory_order_relaxed);
  primed_.store(nullptr, std::memory_order_relaxed);
  pastCaches_.store(wins, std::memory_order_relaxed);
}

namespace {

// Nanoseconds a byte.
template <class Copy>
double timeOf(Copy&& copy, std::byte* to, const std::byte* from, std::size_t bytes) {
  const double start = nowNs();
  copy(to, from, bytes);
  return (nowNs() - start) / static_cast<double>(bytes);
}

void copyThrough(std::byte* to, const std::byte* from, std::size_t bytes) {
  copyBytes(to, from, bytes);
  drainStores();
}

// So many bytes either way; past the caches first, as such stores end by waiting for all before them.
void storeBoth(std::byte* to, const std::byte* from, std::size_t piece, StorePreference* judge) {
  const double pastNs = timeOf(copyPast, to, from, piece);
  const double throughNs = timeOf(copyThrough, to + piece, from + piece, piece);
  if (judge != nullptr) judge->judge(throughNs, pastNs);
}

}  // namespace

std::size_t StoreChoice::triedOf(std::size_t bytes) {
  return 2 * std::clamp(bytes / 4 / kLine * kLine, kLeast, kMostTried);
}

void StoreChoice::copy(void* to, const void* from, std::size_t bytes) {
  auto* const target = static_cast<std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  if (bytes < kLeast || to == from)
    copyBytes(to, from, bytes);
  else if (bytes < kLeastSplit)
    copyWhole(target, source, bytes);
  else
    copySplit(target, source, bytes);
}

void StoreChoice::copyWhole(std::byte* to, const std::byte* from, std::size_t bytes) {
  const StorePreference::Try now = preference_.due(to, bytes, bytes);
  if (now == StorePreference::Try::None)
    preference_.isPastCaches() ? copyPast(to, from, bytes) : copyTimed(to, from, bytes);
  else
    preference_.isPastCaches() ? tryThrough(now, to, from, bytes) : tryPast(to, from, bytes);
}

// Lines that were stored past the caches are in none, so the same are stored through them twice.
void StoreChoice::tryThrough(StorePreference::Try now, std::byte* to, const std::byte* from,
                             std::size_t bytes) {
  if (now == StorePreference::Try::Prime) preference_.tookPast(timeOf(copyPast, to, from, bytes));
  const double throughNs = timeOf(copyThrough, to, from, bytes);
  if (now == StorePreference::Try::Judge) preference_.judge(throughNs, preference_.pastNs());
}

// Judged by the last copy that was timed; where there is none, this one is.
void StoreChoice::tryPast(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (storedPast_.load(std::memory_order_relaxed) == to) return copyTimed(to, from, bytes);
  const double throughNs = preference_.takeThroughNs();
  if (throughNs == 0) return preference_.suspect(timeOf(copyThrough, to, from, bytes));
  storedPast_.store(to, std::memory_order_relaxed);
  preference_.judge(throughNs, timeOf(copyPast, to, from, bytes));
}

void StoreChoice::copySplit(std::byte* to, const std::byte* from, std::size_t bytes) {
  using Try = StorePreference::Try;
  const std::size_t tried = triedOf(bytes);
  const Try now = preference_.due(to, bytes, tried);
  if (now != Try::None) storeBoth(to, from, tried / 2, now == Try::Judge ? &preference_ : nullptr);
  const std::size_t done = now == Try::None ? 0 : tried;
  if (preference_.isPastCaches()) return copyPast(to + done, from + done, bytes - done);
  copyBytes(to + done, from + done, tried - done);
  copyTimed(to + tried, from + tried, bytes - tried);
}

// One of a few is. What may be tried is none of it: a try makes the next stores to the same lines slow.
void StoreChoice::copyTimed(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::uint32_t kTimeEvery = 8;
  const void* const slow = storedPast_.load(std::memory_order_relaxed);
  if (slow == to) storedPast_.store(nullptr, std::memory_order_relaxed);
  const bool timed =
      slow != to && copies_.fetch_add(1, std::memory_order_relaxed) % kTimeEvery == 0;
  if (timed)
    preference_.suspect(timeOf(copyThrough, to, from, bytes));
  else
    copyBytes(to, from, bytes);
}

}  // namespace weft::reduce
