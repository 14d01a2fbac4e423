// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// Memory that could be had without anybody being killed for it.
struct Available {
  std::uint64_t bytes = 0;
  std::string where;  // what sets this limit, for an error: "this host" or "cgroup /a/b"
};

// The least of what the host and each cgroup (v2) above this process leave; what is unknown does
// not limit. Page cache counts as available.
Available availableMemory();

}  // namespace weft
