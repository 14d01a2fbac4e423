// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/durable_file.h"
#include "reduce/reduce.h"

namespace weft::checkpoint {

// The safetensors format (github.com/huggingface/safetensors): the length of the header as a
// little-endian u64, the header in JSON, and the tensors' data without holes. Of float32, bfloat16
// and float16.
struct Tensor {
  std::string name;
  reduce::DType type = reduce::DType::F32;
  std::vector<std::uint64_t> shape;
  std::uint64_t offset = 0;  // in the file, of what a reader has found

  std::uint64_t elements() const;
  std::uint64_t bytes() const { return elements() * reduce::sizeOf(type); }
};
using TensorMetadata = std::map<std::string, std::string>;

// All that comes before the data, of tensors whose data follow in this order. InvalidArgument names
// the tensor that the format cannot hold.
Status safetensorsHeader(const std::vector<Tensor>& tensors, const TensorMetadata& metadata,
                         std::string* header);

// A file that has been found to be whole and valid. Reading is for any thread.
class SafetensorsFile {
 public:
  // InvalidArgument, and what is wrong with the file, if it is none.
  static Status open(const std::string& path, SafetensorsFile* out);

  const InputFile& file() const { return file_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }  // in order of their data
  const TensorMetadata& metadata() const { return metadata_; }

  // Elements [from, from + count) of a tensor as another type, rounded to nearest.
  Status read(const Tensor& tensor, std::uint64_t from, std::uint64_t count, reduce::DType to,
              void* data) const;

 private:
  InputFile file_;
  std::vector<Tensor> tensors_;
  TensorMetadata metadata_;
};

}  // namespace weft::checkpoint
