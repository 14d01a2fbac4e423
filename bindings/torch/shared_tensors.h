// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace weft::pytorch {

// From now on PyTorch's CPU tensors of at least so many bytes lie in memory that the ranks of this host
// share, where there is room; the rest, and smaller ones, come from the allocator that was there before.
// Those that exist stay where they are. Once more: only the threshold changes.
void useSharedTensors(std::size_t leastBytes);

}  // namespace weft::pytorch
