// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "tools/train/output_file.h"
#include "tools/train/weights/weights_writer.h"

namespace weft::train {
namespace {

class SafetensorsWriter : public WeightsWriter {
 public:
  SafetensorsWriter(const std::string& file, const std::vector<NamedShape>& tensors) : file_(file) {
    nlohmann::json json{{"__metadata__", {{"format", "pt"}}}};
    uint64_t end = 0;
    for (const NamedShape& tensor : tensors) {
      const uint64_t from = std::exchange(end, end + tensor.elements() * sizeof(float));
      json[tensor.name] = {
          {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {from, end}}};
    }
    std::string header = json.dump();
    header.append((8 - header.size() % 8) % 8, ' ');
    const uint64_t length = header.size();
    file_.write(&length, sizeof length);
    file_.write(header);
  }

  void append(std::span<const float> tensor) override {
    file_.write(tensor.data(), tensor.size_bytes());
  }
  void finish() override { file_.finish(); }

 private:
  OutputFile file_;
};

}  // namespace

std::unique_ptr<WeightsWriter> safetensorsWriter(const std::string& file,
                                                 const std::vector<NamedShape>& tensors) {
  return std::make_unique<SafetensorsWriter>(file, tensors);
}

}  // namespace weft::train
