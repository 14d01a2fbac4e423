// SPDX-License-Identifier: Apache-2.0
// The command line: nccom-test's.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "perf/weft-perf/options.h"
#include "tools/test/groups.h"
#include "tools/test/operations.h"

namespace weft::test {

struct TestOptions {
  perf::Options measure;  // what all operations have in common
  std::vector<const Operation*> operations;
  std::vector<perf::Pair> pairs;  // of permute; empty = around the ring

  int ranks = 0;
  Groups groups;  // empty = one of all ranks
  int nodes = 0;  // that the ranks must be on; 0 = any
  std::vector<std::string> hosts;
  bool slurm = false;

  std::vector<std::string> stats = {"avg"};  // or percentiles: "p50"
  bool showAlgorithm = false;
  bool showSizes = false;
  bool interactive = true;

  const std::string& json() const { return measure.json; }
};

// The options, or the exit code after help or an error has been printed.
std::variant<TestOptions, int> parseOptions(int argc, char** argv);

}  // namespace weft::test
