// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hwy/foreach_target.h"

namespace weft::hwy {

// Orders stores past the caches before those that follow.
inline void FlushStream() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace weft::hwy
