// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace weft::checkpoint {

// Which model a checkpoint holds, and in which files. On disk it carries its own checksum.
inline constexpr const char* kIndexFile = "index.json";

struct CheckpointIndex {
  static constexpr std::uint64_t kVersion = 2;

  struct Parameter {
    std::string name;
    std::uint64_t elements = 0;
    bool frozen = false;
  };
  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    std::string sha256;
  };
  std::int64_t steps = 0;
  std::vector<std::string> arrays;  // "weight" and those of the optimizer
  std::vector<Parameter> parameters;
  std::vector<File> files;
  std::string meta;      // the caller's
  std::string previous;  // the name of the one that was the last before, or nothing
};

// InvalidArgument if it is not UTF-8.
Status printIndex(const CheckpointIndex& index, std::string* json);
// InvalidArgument, naming the path, if the file is damaged, foreign or newer.
Status readIndex(const std::string& path, CheckpointIndex* out);
// Is it of this model and optimizer, or if `wanted` names no arrays of this model? The error names the
// parameter and the path.
Status compareIndex(const std::string& path, const CheckpointIndex& found,
                    const CheckpointIndex& wanted);
Status checkMeta(const std::string& json);

}  // namespace weft::checkpoint
