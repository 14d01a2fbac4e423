// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "perf/weft-perf/collective.h"
#include "perf/weft-perf/types.h"
#include "sim/job.h"
#include "sim/network.h"

namespace weft::simulator {

// The command line.
struct Options {
  const perf::Collective* collective = nullptr;
  perf::TypeInfo type{};
  std::size_t minBytes = 0, maxBytes = 0, stepBytes = 0, factor = 1;
  int root = 0;
  std::string algorithm;

  std::string topology, machine;
  std::uint32_t nodes = 0, ranksOfNode = 0;  // 0: as the file says
  std::uint32_t coresOfNode = 0;             // 0: one for each rank
  std::uint32_t numaNodes = 1;               // of a node
  double memoryRate = 0;                     // GB/s of a node; 0: no limit
  bool ownBuffers = false;                   // of weftMemAlloc
  double messageNs = plan::Between().messageNs;

  std::vector<sim::Change> changes;
  std::vector<sim::Straggler> stragglers;
  std::uint64_t seed = 0;
  double sigma = 0;  // 0: no jitter
  int draws = 20;
  bool folds = true, evens = false, exact = false;

  std::size_t links = 3;  // of the busiest, in the table
  std::string json, trace;
};

// Or the exit code with which the program ends at once.
std::variant<Options, int> parseOptions(int argc, char** argv);

}  // namespace weft::simulator
