// SPDX-License-Identifier: Apache-2.0
// The tensors of one mapped file, none of which is read yet. `name` is that of the file, for
// errors. They lie in the file, in full. Throws Failure with the offset of what is wrong.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/train/weights/stored_tensor.h"

namespace weft::train {

// github.com/huggingface/safetensors, with the types that hold a byte or more.
std::vector<StoredTensor> safetensorsOf(std::span<const uint8_t> file, const std::string& name);

// What torch.save writes since torch 1.6, of a state dict.
std::vector<StoredTensor> torchTensorsOf(std::span<const uint8_t> file, const std::string& name);

// Whichever it is, by its first bytes.
std::vector<StoredTensor> tensorsOf(std::span<const uint8_t> file, const std::string& name);

}  // namespace weft::train
