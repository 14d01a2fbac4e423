// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
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

// The machines, as they are asked for.
struct Place {
  std::string topology, machine;
  std::uint32_t nodes = 0, ranksOfNode = 0;  // 0: as the file says
  std::uint32_t coresOfNode = 0;             // 0: one for each rank
  std::uint32_t numaNodes = 1;               // of a node
  double memoryRate = 0;                     // GB/s of a node; 0: no limit
  double messageNs = plan::Between().messageNs;
  std::vector<sim::Change> changes;
  std::vector<sim::Straggler> stragglers;
};

// What is typed of it, where the type is another.
struct RawPlace {
  std::vector<std::string> without, slow, half, stragglers;
  double messageUs = 0;
};
void addPlace(CLI::App& app, RawPlace& raw, Place& place);
void addChanges(CLI::App& app, RawPlace& raw);
// Throws CLI::ValidationError.
void convert(const CLI::App& app, const RawPlace& raw, Place& place);

// The command line.
struct Options : Place {
  const perf::Collective* collective = nullptr;
  perf::TypeInfo type{};
  std::size_t minBytes = 0, maxBytes = 0, stepBytes = 0, factor = 1;
  int root = 0;
  std::string algorithm;
  bool ownBuffers = false;  // of weftMemAlloc

  std::uint64_t seed = 0;
  double sigma = 0;  // 0: no jitter
  int draws = 20;
  bool folds = true, evens = false, exact = false;

  std::size_t links = 3;  // of the busiest, in the table
  bool ways = false;      // simulate everything that the model may choose
  std::string json, trace, measured, goal;
};

// Or the exit code with which the program ends at once.
std::variant<Options, int> parseOptions(int argc, char** argv);

}  // namespace weft::simulator
