// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace weft::tune {

// Where two threads of this process can work side by side.
struct TwoCores {
  int home = -1;
  int away = -1;  // -1: there is no second core

  bool place(std::size_t side) const;  // the calling thread; false: it cannot be moved
};
TwoCores findTwoCores();  // of one NUMA node, where that can be
TwoCores findFarCores();  // of two; none where there is one

// What flags cost two threads, in ns; 0: could not be measured.
struct PairTimes {
  double exchange = 0;  // one way, on two cores
  double message = 0;   // each further flag of an exchange
  // On one core, by sched_yield. Where another process takes its time slice in between, that is what
  // is measured: unknown.
  double handOver = 0;
  static constexpr double kTimeSlice = 100e3;  // the shortest that Linux lets one set
  bool complete = true;  // all of it was measured that this machine has cores for
  bool steady = true;
  long evictions = 0;  // from cores of their own
};

PairTimes measurePair();

}  // namespace weft::tune
