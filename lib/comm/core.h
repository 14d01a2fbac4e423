// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/carriage.h"
#include "engine/executor.h"
#include "engine/pairs.h"
#include "plan/cache.h"
#include "transports/transport.h"
#include "tune/this_machine.h"
#include "watch/watch.h"

namespace weft {

// What the creator of a communicator asks for: weftConfig_t with the knobs filled in.
struct CommConfig {
  int timeoutMs = 600000;
  int initTimeoutMs = 120000;
  std::string name;
  std::string transport = "auto";
  bool reproducible = false;
};

// The machinery of one rank's end of a communicator: what ends with a lost link, and is made anew
// when that is mended (comm/mend.h).
struct Core {
  struct Parts {
    std::uint32_t rank = 0;
    std::uint32_t ranks = 1;
    std::uint32_t localRank = 0;
    CommConfig config;
    std::vector<RankPlace> members;
    Carriage carriage;
    std::unique_ptr<Transport> transport;
    std::shared_ptr<FarRanks> farRanks;  // null: all ranks share memory
    std::vector<PeerName> names;
    std::uint32_t coresHere = 1;  // that this host's ranks have together
    WaitTuning waiting;
    std::uint32_t lanes = kParities;
    Tuning tuning;
    Origin calibrated = Origin::Nowhere;  // where rank 0 has tuning.ground.machine from
    BindTarget target;
  };
  explicit Core(Parts made);
  ~Core() { watch.leaveForGood(); }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  Parts parts;
  Watch watch;
  Executor executor;
  Pairs pairs;
  PlanCache plans;
  // Collectives up to this number have failed on a rank, and so fail on all.
  std::uint64_t failedUpTo = 0;
  Status failure;  // why
};

}  // namespace weft
