// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>

#include "tools/train/failure.h"

namespace weft::tokens {

// What is wrong, and where: a file, with a line or an entry if one is to blame.
[[noreturn]] inline void refuse(const std::string& place, const std::string& why) {
  throw train::Failure(train::Exit::kData, fmt::format("{}: {}", place, why));
}

}  // namespace weft::tokens
