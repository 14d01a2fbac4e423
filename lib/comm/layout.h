// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "plan/tuning.h"
#include "transports/window.h"

namespace weft::comm {

// Staging memory of one lane, inside a host.
inline constexpr std::size_t kArenaBytes = std::size_t{1} << 20;

// What every rank's window has room for. Room is address space: pages come with what is used, so
// what plans may need only when they are forced costs nothing.
transport::WindowLayout layoutFor(const plan::Tuning& tuning, bool oneHost);

}  // namespace weft::comm
