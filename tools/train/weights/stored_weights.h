// SPDX-License-Identifier: Apache-2.0
// The weights that others have saved: one file, or several with an index that says which has what.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/train/mapped_file.h"
#include "tools/train/weights/stored_tensor.h"

namespace weft::train {

class StoredWeights {
 public:
  // A .safetensors, .pt or .bin file, its index (*.index.json), or a folder with one of them under
  // the name that Hugging Face gives it. Throws Failure with what is wrong, and where.
  explicit StoredWeights(const std::string& path);

  struct Place {
    StoredTensor tensor;
    std::string file;
  };
  const std::map<std::string, Place>& tensors() const { return tensors_; }
  // The file that was named, or was found in the folder.
  const std::string& file() const { return file_; }

 private:
  void readFile(const std::string& file);
  void readIndex();

  std::string file_;
  std::vector<std::unique_ptr<MappedFile>> files_;  // which the tensors lie in
  std::map<std::string, Place> tensors_;
};

}  // namespace weft::train
