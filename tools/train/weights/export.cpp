// SPDX-License-Identifier: Apache-2.0
#include "tools/train/weights/export.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "tools/train/models/rotary.h"
#include "tools/train/parameters.h"
#include "tools/train/weights/hugging_face.h"
#include "tools/train/weights/stored_weights.h"
#include "tools/train/weights/weights_writer.h"

namespace weft::train {
namespace {

bool isTorchs(const std::string& file) {
  constexpr std::array<std::string_view, 3> kEndings{".pt", ".pth", ".bin"};
  return std::ranges::any_of(kEndings, [&](std::string_view each) { return file.ends_with(each); });
}

// The tensors that a parameter becomes.
std::vector<NamedShape> tensorsOf(const NamedParameter& named, std::vector<int64_t> shape) {
  shape[0] /= static_cast<int64_t>(named.names.size());
  if (named.transposed) std::swap(shape.at(0), shape.at(1));
  std::vector<NamedShape> tensors;
  for (const std::string& name : named.names) tensors.push_back({name, shape});
  return tensors;
}

std::vector<SharedTensor> sharedOf(const std::vector<Copy>& copies,
                                   const std::vector<NamedShape>& tensors) {
  std::vector<SharedTensor> shared;
  for (const auto& [name, of] : copies) {
    const auto same = std::ranges::find(tensors, of, &NamedShape::name);
    shared.push_back({name, static_cast<size_t>(same - tensors.begin())});
  }
  return shared;
}

// Of the first stage that has it.
std::vector<float> wholeOf(const Parameter& parameter, const std::vector<StoredWeights>& stored,
                           size_t tensorParts) {
  std::vector<std::vector<float>> parts;
  for (const StoredWeights& part : stored) {
    const auto found = part.tensors().find(parameter.name);
    if (found == part.tensors().end()) continue;
    parts.push_back(floatsOf(found->second.tensor));
    if (parts.size() == tensorParts) break;
  }
  return parts.size() == 1 ? std::move(parts[0]) : joined(parameter, parts);
}

// As if it lay in a file.
StoredTensor tensorOf(const std::vector<float>& values, const std::vector<int64_t>& shape) {
  StoredTensor tensor;
  tensor.type = StoredType::kFloat32;
  tensor.shape = shape;
  tensor.strides = rowMajor(shape);
  tensor.data = reinterpret_cast<const uint8_t*>(values.data());
  return tensor;
}

}  // namespace

void exportWeights(const std::vector<std::string>& parts, size_t tensorParts,
                   const std::string& target, const ModelShape& shape) {
  std::vector<StoredWeights> stored;
  for (const std::string& part : parts) stored.emplace_back(part);
  const HuggingFaceNames names = huggingFaceNames(shape);
  const std::vector<Parameter> list = parametersOf(shape).list;
  std::vector<NamedShape> tensors;
  for (size_t i = 0; i < list.size(); ++i)
    for (const NamedShape& tensor : tensorsOf(names.parameters[i], list[i].shape))
      tensors.push_back(tensor);
  const auto writer = isTorchs(target)
                          ? torchWriter(target, tensors, sharedOf(names.copies, tensors))
                          : safetensorsWriter(target, tensors);
  for (size_t i = 0; i < list.size(); ++i) {
    const NamedParameter& named = names.parameters[i];
    std::vector<float> floats = wholeOf(list[i], stored, tensorParts);
    if (named.transposed) floats = floatsOf(transposed(tensorOf(floats, list[i].shape)));
    if (!named.rows.empty()) floats = rowsInOrder(floats, inverseOrder(named.rows));
    const size_t part = floats.size() / named.names.size();
    for (size_t at = 0; at < floats.size(); at += part)
      writer->append(std::span(floats).subspan(at, part));
  }
  writer->finish();
}

}  // namespace weft::train
