// SPDX-License-Identifier: Apache-2.0
// The tensors of a state dict, from the pickle in a file of torch.save. A pickle is a program that
// may call whatever Python has. This reader calls nothing: it knows the opcodes that a dict of
// tensors takes and the names that stand in one, and refuses a pickle with any other, saying where.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft::train {

struct PickledTensor {
  std::string name;
  std::string storageType;  // such as FloatStorage
  std::string storage;      // the name of the archive's entry
  int64_t storageElements = 0;
  int64_t offset = 0;  // in the storage, in elements
  std::vector<int64_t> shape, strides;
};

// In the order of the dict: of itself, or of the one in it that is called model, module or
// state_dict. `file`, and `at`, where the pickle begins in it, are for errors. Throws Failure.
std::vector<PickledTensor> tensorsOfPickle(std::span<const uint8_t> pickle, const std::string& file,
                                           uint64_t at);

}  // namespace weft::train
