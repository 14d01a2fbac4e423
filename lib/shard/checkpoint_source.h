// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "shard/checkpoint_index.h"
#include "shard/layout.h"
#include "shard/safetensors.h"

namespace weft {

// A run of one parameter in one of its arrays, and its name in a shard's file: "param/array@from".
struct ArrayRun {
  std::string parameter, array;
  std::uint64_t from = 0, elements = 0;
};
std::string nameOf(const ArrayRun& run);
bool parseRun(const Tensor& tensor, ArrayRun* out);

// A checkpoint to read from, whoever wrote it in whatever parts. Errors name the file, and the
// parameter if it is about one.
class CheckpointSource {
 public:
  // Reads all but the data; what is found is complete, and of this model and optimizer.
  static Status open(const std::string& checkpoint, const Layout& layout,
                     const std::vector<std::string>& arrays, CheckpointSource* out);
  const CheckpointIndex& index() const { return index_; }
  const std::string& path() const { return path_; }

  // The files whose number is `which` modulo `of`, so that ranks may share the work.
  Status verify(std::size_t which, std::size_t of) const;

  // Elements [from, from + count) of a parameter of the layout, in its array of this number.
  Status read(std::uint32_t parameter, std::size_t array, std::uint64_t from, std::uint64_t count,
              DType type, void* to) const;

 private:
  struct Run {
    std::uint64_t from = 0, elements = 0;
    std::size_t file = 0, tensor = 0;
  };
  Status openFiles();
  Status collect(const Layout& layout);
  Status checkCover(const ParameterSpec& parameter, std::size_t array,
                    std::vector<Run>* runs) const;
  std::size_t slot(std::uint32_t parameter, std::size_t array) const {
    return parameter * index_.arrays.size() + array;
  }

  std::string path_;
  CheckpointIndex index_;
  std::vector<SafetensorsFile> files_;
  std::vector<std::vector<Run>> runs_;  // by parameter and array, by place
};

}  // namespace weft
