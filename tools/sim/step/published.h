// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/sim/step/model.h"

namespace weft::simulator {

// Is it the name of one of weft-train's models?
bool isPublishedModel(const std::string& name);

// How long a micro-step computes, and which part of that is forward.
struct ComputeTime {
  double ns = 0;
  double forwardPart = 1.0 / 3;  // backward multiplies two matrices for each of forward
};

// Such a model, whose layers take their parts of the time: as the elements of the matrices that they
// multiply with, since attention's own products and all else that is computed stand in no table.
// Embeddings are looked up, which takes none.
StepModel publishedModel(const std::string& name, const ComputeTime& time);

}  // namespace weft::simulator
