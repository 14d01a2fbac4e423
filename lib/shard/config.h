// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/status.h"
#include "shard/layout.h"
#include "shard/mesh.h"
#include "shard/rules.h"

namespace weft::shard {

struct ShardConfig {
  Degrees degrees;
  reduce::DType paramType = reduce::DType::BF16;  // what the model computes with
  reduce::DType gradType = reduce::DType::BF16;   // what backward writes
  reduce::DType wireType = reduce::DType::BF16;   // what gradients are while they travel
  OptimizerSettings optimizer;
  bool master = true;  // fp32 weights beside 16-bit parameters
  reduce::RoundingMode rounding = reduce::RoundingMode::Nearest;  // of weights to parameters
  std::uint64_t seed = 0;
  std::uint64_t bucketElements = std::uint64_t{4} << 20;
  bool reproducible = false;  // the same bits for any number of ranks: micro_step.h
  bool eager = false;         // no barrier between the last gradient and the first update
};

// Which part of the model the ranks of a mesh share, of how many.
struct ModelPart {
  std::uint32_t index = 0, count = 1;
};

// InvalidArgument says which settings are impossible, alone or together.
Status checkConfig(const ShardConfig& config, std::uint32_t ranks);

// Do all ranks want the same? Before anything is made; the error names rank and parameter. `mine`
// is what this rank has found wrong by itself. Collective, in turn.
Status agreeOnModel(comm::Communicator& comm, const ShardConfig& config, const ModelPart& part,
                    const Layout& layout, const Status& mine);
// Do the ranks of equal number that have the parts of the model? `mine` is what agreeOnModel said.
// Collective over both, in turn.
Status agreeOnParts(comm::Communicator& comm, comm::Communicator& parts, const ShardConfig& config,
                    const Status& mine);

}  // namespace weft::shard
