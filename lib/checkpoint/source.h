// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/index.h"
#include "checkpoint/safetensors.h"

namespace weft::checkpoint {

// "param/array", of a tensor that has a run of a parameter in one of its arrays.
std::string tensorName(const std::string& parameter, const std::string& array);

// A checkpoint to read from, whoever wrote it in whatever parts. Errors name the file, and the
// parameter if it is about one.
class CheckpointSource {
 public:
  // Reads all but the data; what is found is complete, and of the model and optimizer of `wanted`.
  static Status open(const std::string& checkpoint, const CheckpointIndex& wanted,
                     CheckpointSource* out);
  const CheckpointIndex& index() const { return index_; }

  // The files whose number is `which` modulo `of`, so that ranks may share the work.
  Status verify(std::size_t which, std::size_t of) const;

  // Elements [from, from + count) of a parameter, in its array of this number.
  Status read(const std::string& parameter, std::size_t array, std::uint64_t from,
              std::uint64_t count, reduce::DType type, void* to) const;

 private:
  struct Run {
    std::uint64_t from = 0, elements = 0;
    std::size_t file = 0, tensor = 0;
  };
  using Runs = std::vector<Run>;  // by place
  Status openFiles();
  Status collect();
  Status collect(std::size_t file);
  Status checkCover(const CheckpointIndex::Parameter& parameter, std::size_t array);

  std::string path_;
  CheckpointIndex index_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::vector<Runs>> runs_;  // by parameter and array
};

}  // namespace weft::checkpoint
