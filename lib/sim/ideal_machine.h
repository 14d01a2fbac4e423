// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tune/machine.h"

namespace weft::sim {

// Whose cores and memory take no time: only links do.
inline tune::Machine idealMachine() {
  constexpr double kRate = 1e30;
  tune::Machine machine;
  machine.cacheBytes = 1 << 20;
  machine.sharers = 1;
  machine.foldNear = kRate;
  for (tune::Curve tune::Machine::*curve :
       {&tune::Machine::load, &tune::Machine::copy, &tune::Machine::put, &tune::Machine::take,
        &tune::Machine::stream, &tune::Machine::cmaPut, &tune::Machine::cmaTake})
    machine.*curve = tune::flat(kRate);
  return machine;
}

}  // namespace weft::sim
