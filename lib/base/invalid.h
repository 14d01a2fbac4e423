// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/status.h"

namespace weft::inline base {

// An error in what a caller has passed.
inline Status invalid(std::string why) {
  return Status::error(Code::InvalidArgument, std::move(why));
}

}  // namespace weft::inline base
