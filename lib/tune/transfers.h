// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "tune/machine.h"
#include "tune/pair.h"

namespace weft::tune {

// Measures the curves of a Machine as calls meet them: two threads on two cores copy between their
// own buffers and each other's at the same time. What is copied has been written by its owner, and
// what is overwritten has been read by its owner, as applications do between calls; what that
// reading costs after stores past the caches is counted as theirs. Where there is one core, one
// thread copies alone.
class Transfers {
 public:
  Transfers();  // maps 48 MiB, which the first measure() touches
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;
  ~Transfers();

  struct Result {
    bool complete = false;  // all that this machine has cores and memory for was measured
    bool steady = false;    // the quickest quarter of all tries is close to the best
    long evictions = 0;     // of threads from cores of their own
  };

  // Fills in the curves and cmaCallNs; what could not be measured is 0.
  Result measure(const TwoCores& cores, Machine* machine);

  // A window of these is copied at once.
  struct Buffers {
    std::byte* in = nullptr;   // written by its owner
    std::byte* out = nullptr;  // read by its owner
  };

 private:
  std::byte* base_ = nullptr;
  std::array<Buffers, 2> buffers_;
  bool touched_ = false;
};

}  // namespace weft::tune
