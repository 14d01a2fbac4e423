// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "perf/accuracy/measure.h"

namespace weft::accuracy {

struct Options {
  std::vector<int> ranks;
  Task task;                           // its seconds: of all jobs together
  std::vector<std::string> replay;     // files whose measurements are judged, in place of new ones
  std::vector<std::string> elsewhere;  // files of other machines, whose misses make the intervals
  std::string json;
  std::string table;      // a folder
  std::size_t worst = 0;  // so many of the costliest choices are listed
};

// Or the exit code, where there is nothing to do.
std::variant<Options, int> parseOptions(int argc, char** argv);

}  // namespace weft::accuracy
