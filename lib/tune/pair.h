// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::tune {

// What two threads cost each other, in ns; 0: could not be measured.
struct PairTimes {
  double exchange = 0;    // one way, on two cores
  double message = 0;     // each further flag of an exchange
  double putPerByte = 0;  // into a staging slot that the other reads
  double takePerByte = 0;
  double handOver = 0;   // on one core, by sched_yield
  bool complete = true;  // all of it was measured that this machine has cores for
  bool steady = true;
  long evictions = 0;  // from cores of their own
};

PairTimes measurePair();

}  // namespace weft::tune
