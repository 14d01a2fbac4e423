// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/checks/host.h"

namespace weft::checks {

struct MemoryNode {
  int index = 0;
  std::set<int> cores;
  double bytes = 0;
};
struct Numa {
  std::vector<MemoryNode> nodes;
  std::set<int> allowedCores, allowedNodes;  // of this process
};
Numa readNuma(const std::string& root);
void checkNuma(const Numa& numa, HostReport& report);

}  // namespace weft::checks
