// SPDX-License-Identifier: Apache-2.0
// Files of float32 tensors, written from their beginning.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft::train {

struct NamedShape {
  std::string name;
  std::vector<int64_t> shape;

  uint64_t elements() const;
};

class WeightsWriter {
 public:
  virtual ~WeightsWriter() = default;
  // The tensors come in the order in which they were announced.
  virtual void append(std::span<const float> tensor) = 0;
  // The file has its name, and is on disk. Until then what was there before is.
  virtual void finish() = 0;
};

// One tensor more under another name.
struct SharedTensor {
  std::string name;
  size_t of;  // index of the tensor
};

// Throw Failure if they cannot write, as their calls do.
std::unique_ptr<WeightsWriter> safetensorsWriter(const std::string& file,
                                                 const std::vector<NamedShape>& tensors);
// As torch.save writes a state dict. An archive whose parts begin beyond `narrow` takes zip64
// fields; tests have small files.
std::unique_ptr<WeightsWriter> torchWriter(const std::string& file,
                                           const std::vector<NamedShape>& tensors,
                                           const std::vector<SharedTensor>& shared,
                                           uint64_t narrow = 0xffffffff);

}  // namespace weft::train
