// SPDX-License-Identifier: Apache-2.0
// How sharding is typed.
#pragma once

#include <string>

namespace weft::train {

// Into how many ranks parameters, gradients and state are sharded; 0 = all.
struct Degrees {
  int param = 1, grad = 1, state = 1;
};

// "none", "zero1", "zero2", "zero3", "mics" (groups of the ranks of one host, or of half the ranks
// if all are on one, or of as many fewer as divide the ranks), or three numbers, "K,L,M". Throws Failure.
Degrees parseDegrees(const std::string& text, int ranks, int localRanks);

// Throws Failure unless so many ranks can share by them.
void checkDegrees(const std::string& text, int ranks);

}  // namespace weft::train
