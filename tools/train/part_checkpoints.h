// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a model that tensor or pipeline parallelism has cut: a folder for each part,
// DIR/tensor-1-of-2, DIR/pipeline-0-of-4, DIR/pipeline-0-of-4-virtual-2 or with -tensor-1-of-2 after these, in which lib/shard keeps
// the last two. Parts are written side by side, so a run
// that dies may leave one a save ahead of the others: what counts is the last save that all have.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tools/train/model_part.h"

namespace weft::train {

// DIR itself where there is one part.
std::string folderOfPart(const std::string& folder, const ModelPart& part);

// Is there anything to resume of a model that is cut as for `any` of its parts? Throws Failure if what
// is there is cut otherwise.
bool hasCheckpoint(const std::string& folder, const ModelPart& any);

// The number that the last save of all parts has, which is `save` in its caller's JSON; of those below `end`.
std::optional<uint64_t> lastSaveOfAll(const std::string& folder, const ModelPart& any,
                                      uint64_t end = std::numeric_limits<uint64_t>::max());
// How many blocks each run of a pipeline's layers has in it; empty: it does not say.
std::vector<int64_t> blocksOfSave(const std::string& folder, const ModelPart& any, uint64_t save);
// Where a part has it.
std::string pathOfSave(const std::string& folder, const ModelPart& part, uint64_t save);
// Gives it the ending .damaged in all parts, if that is possible.
bool setAside(const std::string& folder, const ModelPart& any, uint64_t save);
// Makes it the last one of all parts, so that what some have beyond it is not taken for one of all.
void goBackTo(const std::string& folder, const ModelPart& any, uint64_t save);

}  // namespace weft::train
