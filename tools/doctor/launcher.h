// SPDX-License-Identifier: Apache-2.0
// Which launcher started this process, if any, and whether others say something else.
#pragma once

#include "tools/checks/host.h"
#include "tools/doctor/environment.h"

namespace weft::doctor {

struct Job {
  std::string launcher;  // the library's name of it; empty: its variables make no sense
  int size = 1;
  int localSize = -1;  // -1: not known
};

// Asks the library, as a rank would; `variables` only tell why.
Job checkLauncher(const Variables& variables, checks::HostReport& report);

}  // namespace weft::doctor
