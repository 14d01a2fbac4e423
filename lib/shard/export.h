// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"
#include "shard/sharded_optimizer.h"

namespace weft::shard {

// One .safetensors file of the whole model, written by rank 0: every parameter under its name, in
// its shape, as the model computes with it or, with full precision, its fp32 weights. Of tied
// parameters the first is there, and the metadata say {other: first}, as
// safetensors.torch.save_model has it. Memory for one bucket at a time. Between optimizer steps;
// collective, and the same result on all ranks. A file that was there stays until the new one is on
// disk.
Status exportModel(ShardedOptimizer& shard, const std::string& file, bool fullPrecision);

}  // namespace weft::shard
