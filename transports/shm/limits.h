// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/status.h"

namespace weft {

// Makes room for `more` open files in this process: raises the soft limit, up to the hard one, if
// it must. The error names the number that is needed.
Status reserveDescriptors(std::size_t more);

}  // namespace weft
