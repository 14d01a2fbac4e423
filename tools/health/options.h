// SPDX-License-Identifier: Apache-2.0
// The command line of weft-health.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace weft::health {

struct Options {
  int localProcesses = 0;  // --ranks N: start them here; 0: alone or by a launcher
  bool quick = false;
  double seconds = 0;       // what the whole may take; 0: 60, quick 10
  double stepSeconds = 0;   // deadline of each step; 0: 10, quick 5
  double joinSeconds = 30;  // deadline for all ranks to join
  std::string transport;    // as WEFT_TRANSPORT
  bool hostChecks = true;
  std::uint64_t seed = 0;  // 0: another one each time
  std::string json;        // files; empty: none, -: stdout
  std::string svg;
  std::string baseline;

  double budget() const { return seconds > 0 ? seconds : quick ? 10 : 60; }
  int stepMs() const {
    return static_cast<int>(1e3 * (stepSeconds > 0 ? stepSeconds : quick ? 5 : 10));
  }
};

// The options, or the exit code after help or an error has been printed.
std::variant<Options, int> parseOptions(int argc, char** argv);

}  // namespace weft::health
