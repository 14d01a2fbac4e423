// SPDX-License-Identifier: Apache-2.0
// The libraries that weft opens when it runs, or is linked with.
#pragma once

#include <string>
#include <vector>

#include "tools/checks/host.h"

namespace weft::checks {

struct Library {
  std::string name;  // "libfabric"
  std::string file;  // "libfabric.so.1", as weft opens it
  std::string purpose;
  std::string package;  // Debian's, which has it
  std::string version;  // its own word, or that of its file's name; empty: it cannot be opened
  std::string problem;  // why not
};
// Opens them, which leaves them loaded.
std::vector<Library> openLibraries();

// Versions of weft, of the kernel and of these libraries, as facts.
void checkSoftware(const std::string& root, const std::vector<Library>& libraries,
                   HostReport& report);

}  // namespace weft::checks
