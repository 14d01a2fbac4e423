// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/now.h"
#include "reduce/store_choice.h"

namespace weft::reduce {

// How a core stores what it folds to memory that another core has read: as a StoreChoice, but tried by
// folds. These take addends from that core as well, which the lines that are taken to be stored to are in
// the way of: between cores without a common cache a fold takes 2.4 times as long through the caches as
// past them where a copy takes as long either way (docs/performance.md). Any thread.
class FoldChoice {
 public:
  // fold(at, n, past) folds n bytes from `at` on and stores them there; one part after the other, of whole
  // lines but the last. Whoever is told afterwards by a release store sees all of it.
  template <class Fold>
  void store(const void* to, std::size_t bytes, Fold&& fold) {
    std::size_t done = 0;
    if (bytes >= kLeastTried) done = tryBoth(to, bytes, fold);
    fold(done, bytes - done, preference_.isPastCaches());
  }

  StorePreference& preference() { return preference_; }

  // Of each of the two ways at a try, and of what there is one.
  static constexpr std::size_t kTried = 8 << 10, kLeastTried = 4 * kTried;
  // Memory that no cache holds costs its reader more; less of what a fold took than of what a copy did.
  static constexpr double kMargin = 1.5;

 private:
  // How many bytes it has stored. Past the caches first, as such stores end by waiting for all before them.
  template <class Fold>
  std::size_t tryBoth(const void* to, std::size_t bytes, Fold& fold) {
    const StorePreference::Try now = preference_.due(to, bytes, 2 * kTried);
    if (now == StorePreference::Try::None) return 0;
    const double start = nowNs();
    fold(0, kTried, true);
    const double middle = nowNs();
    fold(kTried, kTried, false);
    drainStores();
    if (now == StorePreference::Try::Judge) preference_.judge(nowNs() - middle, middle - start);
    return 2 * kTried;
  }

  StorePreference preference_{kMargin};
};

}  // namespace weft::reduce
