// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace weft::inline base {

// No job is larger; whoever says so is wrong.
inline constexpr std::int32_t kMaxRanks = 1 << 20;
// Nor has any rank more threads.
inline constexpr std::int32_t kMaxThreads = 1 << 10;

}  // namespace weft::inline base
