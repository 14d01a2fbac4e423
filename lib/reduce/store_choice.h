// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::reduce {

// Which of two ways to store has lately been the quicker one. Any thread.
class StorePreference {
 public:
  enum class Try { None, Prime, Judge };

  // Memory that no cache holds costs its reader up to twice what it cost its writer.
  static constexpr double kMargin = 3;
  // Past the caches is preferred where it is so much quicker.
  explicit StorePreference(double margin = kMargin) : margin_(margin) {}

  bool isPastCaches() const { return pastCaches_.load(std::memory_order_relaxed); }
  // Is a part of the next copy, which is of so many bytes and to there, to be stored both ways; or all of
  // it (`tried` is `bytes`) the other way?
  Try due(const void* to, std::size_t bytes, std::size_t tried);
  // What a byte took through the caches, without a try: the next try comes sooner if that is much.
  void suspect(double throughNs);
  // What was said last, once; 0: nothing since.
  double takeThroughNs() { return throughNs_.exchange(0, std::memory_order_relaxed); }
  // What a byte took past the caches, by the last try or since.
  double pastNs() const { return pastNs_.load(std::memory_order_relaxed); }
  void tookPast(double ns) { pastNs_.store(ns, std::memory_order_relaxed); }
  // What each of the same number of bytes took either way.
  void judge(double throughNs, double pastNs);

  // One byte of so many is tried; more where a try says otherwise. What a try has stored past the caches is
  // missed there: with one of 128 an all-reduce of 1 MiB took 1.2 times as long.
  // What is suspected is tried soon, and later each time that it was borne out.
  static constexpr std::size_t kTryEvery = 1024, kTrySuspected = 8;
  static constexpr std::uint32_t kAgree = 3;  // tries in a row that change it

 private:
  const double margin_;
  std::atomic<bool> pastCaches_ = false;
  std::atomic<std::uint32_t> against_ = 0;  // tries in a row
  std::atomic<std::uint32_t> tries_ = 0;
  std::atomic<std::size_t> untried_ = 0;  // bytes since the last try
  std::atomic<double> throughNs_ = 0;     // of a byte, without a try
  std::atomic<double> pastNs_ = 0;
  std::atomic<bool> isSuspected_ = false;
  std::atomic<std::size_t> patience_ = kTrySuspected;
  std::atomic<const void*> primed_ = nullptr;
};

// Waits until all stores before it are done.
inline void drainStores() {
  std::atomic<int> any;
  any.exchange(1, std::memory_order_seq_cst);
}

// How a core stores to memory that another core has read. Through the caches each line must be taken
// from that core's first: it may take fifteen times as long as a store past the caches between cores
// that have no cache in common, and five times between neighbours (docs/performance.md); or it is the
// quicker way. Who is a neighbour may change at any time, as hypervisors move the cores of a virtual
// machine about. So some of a copy is now and then stored either way and timed, and the clearly
// quicker one is taken for the copies after it. Any thread.
class StoreChoice {
 public:
  // The memory must not overlap. Whoever is told afterwards by a release store sees all of it.
  void copy(void* to, const void* from, std::size_t bytes);

  StorePreference& preference() { return preference_; }

  // Shorter copies go through the caches: their reader's first miss decides.
  static constexpr std::size_t kLeast = 8 << 10;
  // Shorter ones are stored one way or the other: alone, a few lines take far longer through the caches
  // than among others. From here on a part of a copy is tried both ways, and enough is left to be timed.
  static constexpr std::size_t kLeastSplit = 24 << 10;
  static std::size_t triedOf(std::size_t bytes);

 private:
  void copyWhole(std::byte* to, const std::byte* from, std::size_t bytes);
  void tryThrough(StorePreference::Try now, std::byte* to, const std::byte* from,
                  std::size_t bytes);
  void tryPast(std::byte* to, const std::byte* from, std::size_t bytes);
  void copySplit(std::byte* to, const std::byte* from, std::size_t bytes);
  void copyTimed(std::byte* to, const std::byte* from, std::size_t bytes);

  StorePreference preference_;
  std::atomic<std::uint32_t> copies_ = 0;
  std::atomic<const void*> storedPast_ = nullptr;  // by the last try of a whole copy
};

}  // namespace weft::reduce
