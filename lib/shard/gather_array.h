// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "shard/sharded_optimizer.h"

namespace weft {

// Brings a bucket of an array (of ShardState::arrayNames()) together in fp32 on every rank, laid
// out as the bucket is. Collective.
Status gatherArray(ShardedOptimizer& shard, std::uint32_t bucket, std::size_t array,
                   std::vector<float>* all);

}  // namespace weft
