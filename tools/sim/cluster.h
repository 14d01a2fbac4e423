// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "perf/limits/limits.h"
#include "sim/network.h"
#include "tools/sim/options.h"
#include "tune/machine.h"

namespace weft::simulator {

// The machines that calls are simulated on.
struct Cluster {
  sim::Network network;
  tune::Machine machine;
  std::string measured;                                     // where its numbers are from
  std::shared_ptr<const plan::Imported> imported;           // what --algo names, if that is a file
  std::shared_ptr<const forest::Links> links;               // where it is for links
  std::vector<std::shared_ptr<const forest::Links>> trees;  // that these may be
};

// Errors name the file and the line.
Status makeCluster(const Place& place, Cluster* cluster);
// Is each rank joined to all others, so that none has to forward?
Status checkJoined(const Place& place, const Cluster& cluster);
// What --algo needs beside its name: the schedule in a file, for all ranks and this collective; trees for
// these links. With all else the ranks must be joined.
Status readAlgorithm(const Options& options, Cluster* cluster);
// --machine, or this one, measured. `where`: which of them.
Status readMachine(const Place& place, tune::Machine* machine, std::string* where);
Status checkRank(const Cluster& cluster, const char* what, std::uint32_t rank);

// The communicator that these ranks of the network would have.
std::unique_ptr<tools::Job> makeJob(const Place& place, const Cluster& cluster,
                                    const std::vector<std::uint32_t>& ranks);
std::unique_ptr<tools::Job> makeJobOfAll(const Place& place, const Cluster& cluster);

}  // namespace weft::simulator
