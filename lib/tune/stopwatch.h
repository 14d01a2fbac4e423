// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "base/now.h"

namespace weft::tune {

// How often this thread had to leave its core to somebody else; each sched_yield counts, too.
inline long evictions() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

// The fastest of several tries, and whether the others bear it out.
class Fastest {
 public:
  void add(double ns) {
    second_ = std::min(second_, std::max(best_, ns));
    best_ = std::min(best_, ns);
  }
  double ns() const { return best_; }
  // Two tries agree: it was no accident, and the machine was not busy all the time.
  bool confirmed() const { return second_ <= 1.25 * best_; }

 private:
  double best_ = std::numeric_limits<double>::infinity();
  double second_ = std::numeric_limits<double>::infinity();
};

}  // namespace weft::tune
