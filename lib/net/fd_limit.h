// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace weft::net {

// Makes room for `more` file descriptors besides those that are open: raises the soft limit where
// needed, with as much to spare again if the hard limit has it (ranks that are threads of the
// root's process use both ends of a connection). SystemError with the numbers if the hard limit is
// too low.
Status reserveFds(std::uint64_t more);

// Is this errno of a call that makes a descriptor no fault of what was asked for? Asking again does
// not help then, and fixFor() has the end of a sentence that does.
bool outOfResources(int error);
std::string fixFor(int error);

}  // namespace weft::net
