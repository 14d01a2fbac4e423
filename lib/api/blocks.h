// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "weft/weft.h"

namespace weft::api {

// The elements that the blocks of a buffer span: [begin, end), from its start.
struct Extent {
  std::uint64_t begin = 0, end = 0;
};

// Blocks of a buffer of an uneven call; displs == nullptr: packed. Must be addressable, and not overlap
// but where they are only read (`shared`).
Status measureBlocks(std::span<const std::size_t> counts, const std::size_t* displs,
                     weftDataType_t type, Extent* extent, bool shared = false);

}  // namespace weft::api
