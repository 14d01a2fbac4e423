// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "base/text.h"

namespace weft::inline base {

// An error in what a caller has passed, of a line in parts (base/text.h).
template <class... Parts>
Status invalid(const Parts&... why) {
  return Status::error(Code::InvalidArgument, text(why...));
}

}  // namespace weft::inline base
