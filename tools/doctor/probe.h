// SPDX-License-Identifier: Apache-2.0
// Two processes of this host that try a transport: what a job's ranks would find.
#pragma once

#include <string>

namespace weft::doctor {

struct Probe {
  std::string transport;  // as WEFT_TRANSPORT spells it
  int exitCode = -1;      // perf/common/exit_code.h; -1: it was killed or never came to an end
  std::string says;       // what carries bytes, or why nothing does: the library's own words
  std::string fix = {};   // what would help, if it knows

  bool works() const { return exitCode == 0; }
};

// Runs this program again as `--probe TRANSPORT --ranks 2`, so that no library that it loads can
// take the doctor with it, and waits for it, for half a minute at most.
Probe probe(const std::string& transport);

// What that program then does: it starts two ranks (argv is main's), and each of them meets the
// other, adds up some numbers and says what carried them. Returns its exit code.
int startProbe(char** argv);
int runProbe(const std::string& transport);

}  // namespace weft::doctor
