// SPDX-License-Identifier: Apache-2.0
// What the parameters of a model are called in Hugging Face's transformers, and how they lie there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/train/model_shape.h"

namespace weft::train {

struct NamedParameter {
  // One tensor, or those whose rows follow each other in ours: BERT's queries, keys and values.
  std::vector<std::string> names;
  bool transposed = false;  // GPT-2's matrices are [inputs, outputs]
  // Which of their rows comes where, if not in their order. Of one name, not transposed.
  std::vector<int64_t> rows;
};

// A tensor that is another one again, such as the output matrix of a model whose embedding is tied.
struct Copy {
  std::string name, of;
};

struct HuggingFaceNames {
  std::vector<NamedParameter> parameters;  // in the order of parametersOf(shape)
  std::vector<Copy> copies;
  std::string prefix;  // of all but the head, which files of a model without one leave out
  // Of a classification, whose head most files lack: the first of its parameters, and what begins
  // the names of the tensors that they have instead.
  size_t head = SIZE_MAX;
  std::string otherHeads = {};
};

HuggingFaceNames huggingFaceNames(const ModelShape& shape);

// Whether files have a tensor of this name that is no parameter: masks, tables of angles, parts
// that no head of ours uses.
bool isNoParameter(const std::string& name);

}  // namespace weft::train
