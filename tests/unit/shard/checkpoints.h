// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shard/checkpoint.h"
#include "tests/unit/checkpoint/folders.h"
#include "training.h"

namespace weft::test {
using namespace shard;

inline Status saveCheckpoint(ShardedOptimizer& shard, const std::string& dir,
                             const std::string& meta) {
  CheckpointWriter writer(shard);
  WEFT_TRY(writer.save(dir, meta));
  return writer.wait();
}

inline Training savingAt(Training run, int step, const std::string& dir) {
  run.steps = step;
  run.afterStep = [=](ShardedOptimizer& shard, int steps) {
    return steps == step ? saveCheckpoint(shard, dir, R"({"rows": 12})") : Status();
  };
  return run;
}

inline Training loading(Training run, int step, const std::string& dir) {
  run.first = step;
  run.resume = [=](ShardedOptimizer& shard) -> Status {
    std::string meta;
    WEFT_TRY(loadCheckpoint(shard, dir, &meta));
    EXPECT_EQ(meta, R"({"rows": 12})");
    EXPECT_EQ(shard.state().steps, step);
    return {};
  };
  return run;
}

}  // namespace weft::test
