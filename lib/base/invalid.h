// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/status.h"
#include "base/text.h"

namespace weft::inline base {

// An error in what a caller has passed, of a line in parts (base/text.h).
template <class... Parts>
Status invalid(const Parts&... why) {
  return Status::error(Code::InvalidArgument, text(why...));
}

// The same in the value of a variable of the environment.
template <class... Parts>
Status invalidVariable(std::string_view variable, const Parts&... why) {
  return ofVariable(variable, invalid(why...));
}

}  // namespace weft::inline base
