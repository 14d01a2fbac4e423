// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft {

// What two threads cost each other, in ns; 0: could not be measured.
struct PairTimes {
  double exchange = 0;    // one way, on two cores
  double message = 0;     // each further flag of an exchange
  double putPerByte = 0;  // into a landing slot that the other reads
  double takePerByte = 0;
  double handOver = 0;  // on one core, by sched_yield
  bool steady = true;
};

PairTimes measurePair();

}  // namespace weft
