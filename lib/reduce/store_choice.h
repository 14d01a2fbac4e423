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

  bool isPastCaches() const { return pastCaches_.load(std::memory_order_relaxed); }
  // Are `tried` bytes of the next copy, which is of so many and to there, to be stored both ways?
  Try due(const void* to, std::size_t bytes, std::size_t tried);
  // What the same number of bytes took either way.
  void judge(double throughNs, double pastNs);

  // One byte of so many is tried; more where a try says otherwise.
  static constexpr std::size_t kTryEvery = 128;
  static constexpr std::uint32_t kAgree = 3;  // tries in a row that change it
  // Memory that no cache holds costs its reader up to twice what it cost its writer.
  static constexpr double kMargin = 3;

 private:
  std::atomic<bool> pastCaches_ = false;
  std::atomic<std::uint32_t> against_ = 0;  // tries in a row
  std::atomic<std::uint32_t> tries_ = 0;
  std::atomic<std::size_t> untried_ = 0;  // bytes since the last try
  std::atomic<const void*> primed_ = nullptr;
};

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

  // Shorter copies go through the caches: their reader's first miss decides, and a try would take
  // longer than they do.
  static constexpr std::size_t kLeast = 8 << 10;

 private:
  StorePreference preference_;
};

}  // namespace weft::reduce
