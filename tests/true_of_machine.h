// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace weft::test {

// Findings of these kinds are true of a machine, and of its neighbours, while it is looked at
// (cpu-stolen, memory-tight, nic-drops, ...): no fault of a test that met them. What depends on
// software and settings must be in order wherever the tests run.
inline bool isTrueOfMachine(std::string_view kind) {
  for (const std::string_view part :
       {"cpu-", "memory-", "numa-", "nic-", "rdma-", "clock-", "oom-", "pids-", "nofile-"}) {
    if (kind.starts_with(part)) return true;
  }
  return false;
}

}  // namespace weft::test
