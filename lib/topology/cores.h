// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>

namespace weft {

// The cores in this thread's affinity mask; all if that cannot be read.
cpu_set_t allowedCores();

// How many cores threads that may run on `allowed` can really use, at least 1: no more than the
// cgroup's CPU quota (version 1 or 2) rounded up. Launchers pin each rank to cores of its own, so
// what matters to ranks that wait for each other is the union of their masks.
std::uint32_t usableCores(const cpu_set_t& allowed);

// The quota of a cgroup v2 "cpu.max" line ("200000 100000", "max 100000") in cores, rounded up; 0
// if there is none or the line is malformed.
std::uint32_t coresOfCpuMax(const std::string& line);

}  // namespace weft
