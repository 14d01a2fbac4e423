// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "shard/sharded_optimizer.h"

namespace weft::shard {

// Takes weights, state and steps of one sharded optimizer over into another of the same model, in
// memory: at other degrees, another bucket size, or on more or fewer ranks. Called by all ranks of
// both, between steps: `from` is null on ranks that have joined, `to` on ranks that leave; at least
// one has both. Collective over both. `from` stays as it is; memory for one bucket at a time.
Status reshard(ShardedOptimizer* from, ShardedOptimizer* to);

}  // namespace weft::shard
