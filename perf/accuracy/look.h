// SPDX-License-Identifier: Apache-2.0
// What state the machine is in just now, as its ranks find it.
#pragma once

#include <cstdint>
#include <memory>

#include "perf/accuracy/comm.h"
#include "perf/accuracy/world.h"
#include "tune/calibrate.h"

namespace weft::accuracy {

double nowNs();

// Of this rank. All of them look at the same time.
class Look {
 public:
  // `all` outlives it.
  explicit Look(const Comm& all);

  // Rank 0 measures the machine as a communicator would, while the others go to sleep, and the first two
  // send messages.
  State take();

 private:
  Entry entry(double flagNs) const;

  const Comm& all_;
  const int rank_;
  const std::unique_ptr<Comm> pair_;  // of the first two, and of the others
  tune::Calibrator calibrator_;
};

}  // namespace weft::accuracy
