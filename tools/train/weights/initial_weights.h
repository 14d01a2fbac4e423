// SPDX-License-Identifier: Apache-2.0
// A model's weights from a file of others, by Hugging Face's names.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/train/model_shape.h"
#include "tools/train/parameters.h"
#include "tools/train/weights/hugging_face.h"
#include "tools/train/weights/stored_weights.h"

namespace weft::train {

class InitialWeights {
 public:
  // Finds every parameter of the model, and nothing that it has no place for. Throws Failure,
  // naming the tensor, its shapes and the file.
  InitialWeights(const std::string& path, const ModelShape& shape);

  // A parameter, in the order and layout of parametersOf(shape), whatever the file has it in.
  std::vector<float> of(size_t parameter) const;

 private:
  const StoredWeights::Place* find(const std::string& name) const;
  const StoredTensor& take(const std::string& name, const std::vector<int64_t>& shape);
  void checkCopies();
  void checkRest() const;

  StoredWeights stored_;
  HuggingFaceNames names_;
  std::vector<std::vector<const StoredTensor*>> parts_;  // by parameter
  std::set<std::string> used_;                           // names in the file
};

}  // namespace weft::train
