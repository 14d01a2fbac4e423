// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace weft::control {

// How a connection ended that said no good-bye. The kernel says `Closed` for a process that is gone,
// `Cut` where nothing has come from its host for a while.
struct Loss {
  enum Kind : std::uint8_t { Closed, Cut } kind = Closed;
  std::chrono::milliseconds silence{0};
};

}  // namespace weft::control
