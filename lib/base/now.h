// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace weft::inline base {

// To measure times with; its zero means nothing.
inline double nowNs() {
  using namespace std::chrono;
  return duration<double, std::nano>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace weft::inline base
