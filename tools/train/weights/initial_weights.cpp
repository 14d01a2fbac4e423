// SPDX-License-Identifier: Apache-2.0
#include "tools/train/weights/initial_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace weft::train {
namespace {

constexpr std::string_view kNormWeight = "LayerNorm.weight", kOfCopies = "module.";

// The names that a tensor may have in a file: with or without what a model without head leaves out,
// and with what DistributedDataParallel puts before; the first BERTs' norms have a gamma and a
// beta.
std::vector<std::string> spellings(const std::string& name, const std::string& prefix) {
  std::vector<std::string> all{name};
  if (name.starts_with(prefix)) all.push_back(name.substr(prefix.size()));
  for (size_t i = 0, n = all.size(); i < n; ++i) {
    const size_t stem = all[i].rfind("LayerNorm.");
    if (stem == std::string::npos) continue;
    all.push_back(all[i].substr(0, stem) +
                  (all[i].ends_with(kNormWeight) ? "LayerNorm.gamma" : "LayerNorm.beta"));
  }
  for (size_t i = 0, n = all.size(); i < n; ++i) all.push_back(std::string(kOfCopies) + all[i]);
  return all;
}

[[noreturn]] void wrongTensor(const std::string& sentence) {
  throw Failure(Exit::kData, "--init-from " + sentence +
                                 "; which model is meant say --model, --layers, --hidden, --heads, "
                                 "--vocab-size and --seq");
}

// What a file should have of one of the names of a parameter.
std::vector<int64_t> storedShape(const Parameter& parameter, const NamedParameter& named) {
  std::vector<int64_t> shape = parameter.shape;
  shape[0] /= static_cast<int64_t>(named.names.size());
  if (named.transposed) std::swap(shape.at(0), shape.at(1));
  return shape;
}

bool isSame(const StoredTensor& a, const StoredTensor& b) {
  if (a.shape != b.shape || a.type == StoredType::kNoFloat) return false;
  if (a.data == b.data && a.strides == b.strides && a.type == b.type) return true;
  const std::vector<float> left = floatsOf(a), right = floatsOf(b);
  return std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

}  // namespace

InitialWeights::InitialWeights(const std::string& path, const ModelShape& shape)
    : stored_(path), names_(huggingFaceNames(shape)) {
  const std::vector<Parameter> list = parametersOf(shape).list;
  for (size_t i = 0; i < list.size(); ++i) {
    const NamedParameter& named = names_.parameters[i];
    parts_.emplace_back();
    if (i >= names_.head && find(named.names[0]) == nullptr) continue;
    for (const std::string& name : named.names)
      parts_.back().push_back(&take(name, storedShape(list[i], named)));
  }
  checkCopies();
  checkRest();
}

const StoredWeights::Place* InitialWeights::find(const std::string& name) const {
  for (const std::string& spelling : spellings(name, names_.prefix)) {
    const auto found = stored_.tensors().find(spelling);
    if (found != stored_.tensors().end()) return &found->second;
  }
  return nullptr;
}

const StoredTensor& InitialWeights::take(const std::string& name,
                                         const std::vector<int64_t>& shape) {
  const StoredWeights::Place* const place = find(name);
  if (place == nullptr)
    wrongTensor(fmt::format("{} has no tensor {}, which this model has as {}", stored_.file(), name,
                            inWords(shape)));
  const StoredTensor& tensor = place->tensor;
  if (tensor.shape != shape)
    wrongTensor(fmt::format("{} has the tensor {} as {}, and this model has it as {}", place->file,
                            tensor.name, inWords(tensor.shape), inWords(shape)));
  if (tensor.type == StoredType::kNoFloat)
    throw Failure(
        Exit::kData,
        fmt::format("--init-from {}: tensor {} is of {}, and weights are of floating point",
                    place->file, tensor.name, tensor.typeName));
  used_.insert(tensor.name);
  return tensor;
}

void InitialWeights::checkCopies() {
  for (const auto& [name, of] : names_.copies) {
    const StoredWeights::Place* const copy = find(name);
    if (copy == nullptr) continue;
    if (!isSame(copy->tensor, find(of)->tensor))
      throw Failure(
          Exit::kData,
          fmt::format("--init-from {}: tensor {} differs from {}, which this model has in "
                      "its place",
                      copy->file, copy->tensor.name, of));
    used_.insert(copy->tensor.name);
  }
}

void InitialWeights::checkRest() const {
  for (const auto& [name, place] : stored_.tensors())
    if (!used_.contains(name) && !isNoParameter(name) && !isOfOtherHead(name))
      wrongTensor(fmt::format("{} has a tensor {} {}, which is no part of this model", place.file,
                              name, inWords(place.tensor.shape)));
}

bool InitialWeights::isOfOtherHead(const std::string& name) const {
  return !names_.otherHeads.empty() && name.starts_with(names_.otherHeads);
}

std::vector<float> InitialWeights::of(size_t parameter) const {
  const NamedParameter& named = names_.parameters[parameter];
  std::vector<float> all;
  for (const StoredTensor* const part : parts_[parameter]) {
    const std::vector<float> floats = floatsOf(named.transposed ? transposed(*part) : *part);
    all.insert(all.end(), floats.begin(), floats.end());
  }
  return named.rows.empty() ? all : rowsInOrder(all, named.rows);
}

}  // namespace weft::train
