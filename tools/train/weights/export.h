// SPDX-License-Identifier: Apache-2.0
// A model's weights for others, by Hugging Face's names.
#pragma once

#include <string>
#include <vector>

#include "tools/train/model_shape.h"

namespace weft::train {

// Writes `target` of safetensors files with the parameters of parametersOf(shape, part) under their
// own names, one for each part of the model, of which `tensorParts` that share their layers follow each
// other: what torch.save would of a state dict if it ends with .pt, .pth or .bin, else
// safetensors. All in fp32. What was there is replaced when the new file is whole and on disk.
// Throws Failure.
void exportWeights(const std::vector<std::string>& parts, size_t tensorParts,
                   const std::string& target, const ModelShape& shape);

}  // namespace weft::train
