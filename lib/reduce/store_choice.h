// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/now.h"

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
  // How the next store goes, of so many bytes and to there: as is preferred, through the caches so that the
  // one after it may be judged, or both ways, to be judged?
  Try due(const void* to, std::size_t bytes);
  // What a byte took through the caches, without a try: the next try comes sooner if that is much.
  void suspect(double throughNs);
  // What each byte of one store took either way.
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
  std::atomic<double> pastNs_ = 0;        // of a byte, by the last try
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
// machine about. So now and then one store goes the other way and is timed, and the clearly quicker way is
// taken for those after it. All of a store goes one way: beside a part that went past the caches, another
// took three times through them what it takes alone. Any thread.
class StoreChoice {
 public:
  explicit StoreChoice(double margin = StorePreference::kMargin) : preference_(margin) {}

  // The memory must not overlap. Whoever is told afterwards by a release store sees all of it.
  void copy(void* to, const void* from, std::size_t bytes);
  // Of anything: store(past) stores `bytes` to `to`, past the caches or through them; at a try, once or
  // twice.
  template <class Store>
  void store(const void* to, std::size_t bytes, const Store& store) {
    if (bytes < kLeast) return store(false);
    const StorePreference::Try now = preference_.due(to, bytes);
    const bool areBack = storedPast_.load(std::memory_order_relaxed) == nullptr;
    if (now == StorePreference::Try::Judge && areBack) return tryBoth(to, bytes, store);
    if (now == StorePreference::Try::None && preference_.isPastCaches()) return store(true);
    storeThrough(to, bytes, store);
  }

  StorePreference& preference() { return preference_; }

  // Shorter ones go through the caches: their reader's first miss decides.
  static constexpr std::size_t kLeast = 8 << 10;

 private:
  // One of a few is timed; not what brings back into the caches what a try has stored past them. That may
  // never be stored to again.
  template <class Store>
  void storeThrough(const void* to, std::size_t bytes, const Store& store) {
    constexpr std::uint32_t kTimeEvery = 8, kForgetEvery = 64;
    const std::uint32_t stores = storesThrough_.fetch_add(1, std::memory_order_relaxed);
    const bool isBack = storedPast_.load(std::memory_order_relaxed) != to;
    if (!isBack || stores % kForgetEvery == 0)
      storedPast_.store(nullptr, std::memory_order_relaxed);
    if (isBack && stores % kTimeEvery == 0)
      preference_.suspect(timeOf(store, false, bytes));
    else
      store(false);
  }

  template <class Store>
  void tryBoth(const void* to, std::size_t bytes, const Store& store) {
    const double throughNs = timeOf(store, false, bytes);
    const double pastNs = timeOf(store, true, bytes);
    preference_.judge(throughNs, pastNs);
    storedPast_.store(preference_.isPastCaches() ? nullptr : to, std::memory_order_relaxed);
  }

  // Nanoseconds a byte, until all is stored.
  template <class Store>
  static double timeOf(const Store& store, bool past, std::size_t bytes) {
    const double start = nowNs();
    store(past);
    if (!past) drainStores();  // the others end by waiting for all before them
    return (nowNs() - start) / static_cast<double>(bytes);
  }

  StorePreference preference_;
  std::atomic<std::uint32_t> storesThrough_ = 0;
  std::atomic<const void*> storedPast_ = nullptr;  // by the last try
};

// The same of what is folded. That takes addends from the other core as well, which the lines that are taken
// to be stored to are in the way of: between cores without a common cache a fold takes 2.4 times as long
// through the caches as past them where a copy takes as long either way (docs/performance.md).
class FoldChoice : public StoreChoice {
 public:
  // Memory that no cache holds costs its reader more; less of what a fold took than of what a copy did.
  static constexpr double kMargin = 1.2;
  FoldChoice() : StoreChoice(kMargin) {}
};

}  // namespace weft::reduce
