// SPDX-License-Identifier: Apache-2.0
// What state the machine is in just now, as its ranks find it.
#pragma once

#include <cstdint>
#include <memory>

#include "perf/accuracy/comm.h"
#include "perf/accuracy/world.h"
#include "tune/calibrate.h"

namespace weft::accuracy {

// Of this rank. All of them look at the same time.
class Look {
 public:
  // Rank r runs on core r % cores. `all` outlives it.
  Look(const Comm& all, std::uint32_t cores);

  // Rank 0 measures the machine as a communicator would, while the others go to sleep, and pairs of ranks
  // exchange messages.
  State take();
  // Is a message's way between two cores another one than when it was taken? A virtual machine's cores are
  // now neighbours, now not.
  bool isOld() const;

 private:
  Entry entry(double flagNs) const;
  double handOverNs(double entryNs) const;
  double exchangeNs() const;

  const Comm& all_;
  const std::uint32_t cores_;
  const std::uint32_t rank_, ranks_;
  const std::unique_ptr<Comm> pair_;   // of the first two, and of the others
  const std::unique_ptr<Comm> mates_;  // of the first two of the first core, and of the others
  tune::Calibrator calibrator_;
  double exchangeNs_ = 0;  // when it was taken
};

}  // namespace weft::accuracy
