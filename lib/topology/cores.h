// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// Cores that this process may really use, at least 1: its affinity mask, and no more than its
// cgroup's CPU quota (version 1 or 2) rounded up.
std::uint32_t usableCores();

// The quota of a cgroup v2 "cpu.max" line ("200000 100000", "max 100000") in cores, rounded up; 0
// if there is none or the line is malformed.
std::uint32_t coresOfCpuMax(const std::string& line);

}  // namespace weft
