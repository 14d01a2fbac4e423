// SPDX-License-Identifier: Apache-2.0
// The command line: nccl-tests' flags, by their names, and weft's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "perf/weft-perf/collective.h"
#include "perf/weft-perf/stats.h"
#include "perf/weft-perf/types.h"

namespace weft::perf {

struct Options {
  static constexpr int kAllRoots = -1;

  const char* program = "weft-perf";  // what lines about errors start with
  const Collective* collective = nullptr;

  // Ranks: threads * perThread in this process, times the processes of the launcher.
  int threads = 1;
  int perThread = 1;
  int localProcesses = 0;  // --ranks: 0 = do not start any

  std::size_t minBytes = 32u << 20;
  std::size_t maxBytes = 32u << 20;
  std::size_t stepBytes = 1u << 20;
  std::size_t factor = 1;
  bool exactCounts = false;

  int iterations = 20;
  int warmup = 1;
  bool settles = true;  // -w was not given: as many further ones as there is time for
  static constexpr int kMostSettling = 52;
  static constexpr double kSettlingSeconds = 0.5;
  int aggregate = 1;
  int cycles = 1;  // 0 = endless
  int checks = 1;
  bool checkOnes = false;   // check with ones instead of with exact and random data
  std::uint32_t seed = 0;   // of the first check's data
  bool onlySingle = false;  // time calls one by one, without the steady loop
  bool inPlace = true;      // measure that form too, where there is one

  std::vector<OpInfo> ops;
  std::vector<TypeInfo> types;
  int root = 0;
  std::vector<Pair> pairs;  // who sends to whom in sendrecv; empty = each rank to the next

  bool parallelInit = false;
  bool registerMemory = false;
  bool useStream = false;
  std::size_t unalign = 0;       // elements
  std::size_t unalignBytes = 0;  // and bytes
  int timeoutSeconds = 0;        // 0 = the library's default

  Average average = Average::Mean;
  bool cpuTime = false;
  bool timestamps = false;
  bool memoryReport = false;
  bool perIteration = false;
  int skippedIterations = 0;  // of the first, in the statistics
  bool percentiles = false;
  bool explain = false;
  std::string json, trace;  // file names, empty = none

  std::string algorithm;  // empty = the library chooses
  std::string transport;
  std::string topology;  // file
  bool reproducible = false;

  int ranksPerProcess() const { return threads * perThread; }
  // Iterations are timed one by one as well when somebody will see it.
  bool timesIterations() const {
    return perIteration || percentiles || onlySingle || !json.empty();
  }
};

// The options, or the exit code after help, a list or an error has been printed.
std::variant<Options, int> parseOptions(int argc, char** argv);

}  // namespace weft::perf
