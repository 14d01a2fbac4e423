// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace weft::shm {

// Memory that can be allocated without the kernel killing a process.
struct Available {
  std::uint64_t bytes = 0;
  std::string where;  // what sets this limit, for an error: "this host" or "cgroup /a/b"
};

// The least of what the host and each cgroup (v2) of this process leave, page cache included.
Available availableMemory();

}  // namespace weft::shm
