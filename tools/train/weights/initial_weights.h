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
  // Finds every parameter of the model, but for the head of a classification, and nothing that it has no
  // place for, but for other heads in its place. Throws Failure, naming the tensor, its shapes and the file.
  InitialWeights(const std::string& path, const ModelShape& shape);

  // False of a classification's head that the file lacks.
  bool has(size_t parameter) const { return !parts_[parameter].empty(); }
  // A parameter that it has, in the order and layout of parametersOf(shape), whatever the file has it in.
  std::vector<float> of(size_t parameter) const;

 private:
  const StoredWeights::Place* find(const std::string& name) const;
  const StoredTensor& take(const std::string& name, const std::vector<int64_t>& shape);
  void checkCopies();
  void checkRest() const;
  bool isOfOtherHead(const std::string& name) const;

  StoredWeights stored_;
  HuggingFaceNames names_;
  std::vector<std::vector<const StoredTensor*>> parts_;  // by parameter
  std::set<std::string> used_;                           // names in the file
};

}  // namespace weft::train
