// SPDX-License-Identifier: Apache-2.0
#include "tools/train/weights/stored_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/train/weights/file_formats.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kIndexEnding = ".index.json";
constexpr std::array kUsualNames{"model.safetensors.index.json", "model.safetensors",
                                 "pytorch_model.bin.index.json", "pytorch_model.bin"};

std::string findIn(const std::string& path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) return path;
  for (const char* const name : kUsualNames)
    if (fs::exists(fs::path(path) / name, none)) return fs::path(path) / name;
  throw Failure(Exit::kData, fmt::format("{} has none of {}; name the file itself", path,
                                         fmt::join(kUsualNames, ", ")));
}

// By tensor, the files in the index's folder.
std::map<std::string, std::string> parseIndex(const MappedFile& file, const std::string& name) {
  const Json json = Json::parse(file.text(), nullptr, false);
  const bool has =
      json.is_object() && json.contains("weight_map") && json["weight_map"].is_object();
  if (!has) refuse(name, 0, "it is no index of weights: it has no weight_map");
  std::map<std::string, std::string> files;
  for (const auto& [tensor, in] : json["weight_map"].items()) {
    const std::string word = in.is_string() ? in.get<std::string>() : "";
    if (word.empty() || word != fs::path(word).filename())
      refuse(name, 0, fmt::format("tensor {} is in no file beside the index", tensor));
    files[tensor] = word;
  }
  return files;
}

}  // namespace

StoredWeights::StoredWeights(const std::string& path) : file_(findIn(path)) {
  if (file_.ends_with(kIndexEnding))
    readIndex();
  else
    readFile(file_);
}

void StoredWeights::readFile(const std::string& file) {
  files_.push_back(std::make_unique<MappedFile>(file));
  for (StoredTensor& tensor : train::tensorsOf(files_.back()->bytes(), file)) {
    std::string name = tensor.name;
    const auto [there, isNew] = tensors_.emplace(std::move(name), Place{std::move(tensor), file});
    if (!isNew)
      refuse(file, 0, fmt::format("tensor {} is in {} as well", there->first, there->second.file));
  }
}

void StoredWeights::readIndex() {
  const MappedFile index(file_);
  const std::map<std::string, std::string> wanted = parseIndex(index, file_);
  std::set<std::string> files;
  for (const auto& [tensor, file] : wanted) files.insert(file);
  for (const std::string& file : files) readFile(fs::path(file_).parent_path() / file);
  for (const auto& [tensor, file] : wanted)
    if (!tensors_.contains(tensor))
      refuse(file_, 0, fmt::format("tensor {} is not in {}, where the index has it", tensor, file));
}

}  // namespace weft::train
