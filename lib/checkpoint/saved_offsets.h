// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "checkpoint/safetensors.h"

namespace weft::checkpoint {

// From which element on each tensor of a file has a part of what other files have more of, under the
// same name. All have one dimension.
using SavedOffsets = std::map<std::string, std::uint64_t>;

// In the form of torch.distributed.checkpoint, whose HuggingFaceStorageReader unites such files.
// InvalidArgument if a name is not UTF-8.
Status printOffsets(const SavedOffsets& offsets, TensorMetadata* metadata);

// Nothing where there are none, or they are not of this form.
std::optional<SavedOffsets> parseOffsets(const TensorMetadata& metadata);

}  // namespace weft::checkpoint
