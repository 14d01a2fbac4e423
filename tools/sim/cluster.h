// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/status.h"
#include "perf/limits/limits.h"
#include "sim/network.h"
#include "tools/sim/options.h"

namespace weft::simulator {

// The machines that calls are simulated on, and the communicator that their ranks would have.
struct Cluster {
  sim::Network network;
  std::unique_ptr<tools::Job> job;
  std::string machine;  // where its numbers are from
};

// Errors name the file and the line.
Status makeCluster(const Options& options, Cluster* cluster);

}  // namespace weft::simulator
