// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstddef>
#include <string>

namespace weft::topology {

// NUMA nodes by the kernel's word, which is there without hwloc and read once a process.

// How many of them have cores; 1 where the kernel does not tell it.
std::size_t numaNodes();
// The node of all these cores; -1 if they are of several, or there is one node only.
int numaNodeOf(const cpu_set_t& cores);

// The same by the files of `folder`, which are as those of /sys/devices/system/node.
int numaNodeOf(const cpu_set_t& cores, const std::string& folder);

// "0-3,8" as the kernel writes it; empty if it is anything else.
cpu_set_t coresOfList(const std::string& list);

}  // namespace weft::topology
