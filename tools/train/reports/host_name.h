// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace weft::train {

// gethostname(2)'s, or "localhost".
std::string hostName();

}  // namespace weft::train
