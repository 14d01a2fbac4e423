// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/status.h"

namespace weft {

// Makes room for `more` file descriptors besides those that are open: raises the soft limit where
// needed, with as much to spare again if the hard limit has it (ranks that are threads of the
// root's process use both ends of a connection). SystemError with the numbers if the hard limit is
// too low.
Status reserveFds(std::uint64_t more);

}  // namespace weft
