// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"

namespace weft::inline base {

// Makes room for `more` file descriptors besides those that are open in this process: raises the
// soft limit where needed, up to `spare` further if the hard limit has them. SystemError with the
// numbers, and `what` they are for, if the hard limit is too low. Any thread.
Status reserveOpenFiles(std::size_t more, std::size_t spare, std::string_view what);

}  // namespace weft::inline base
