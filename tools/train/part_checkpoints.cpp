// SPDX-License-Identifier: Apache-2.0
#include "tools/train/part_checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "perf/common/report_file.h"
#include "tools/train/checkpoint_folder.h"
#include "tools/train/failure.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;

// The part that a folder of this name is of, if it is one.
std::optional<ModelPart> partNamed(const std::string& name) {
  ModelPart part;
  auto& [tensor, stage] = part;
  const char* rest = name.c_str();
  int read = 0;
  const auto skip = [&] { rest += read + (rest[read] == '-' ? 1 : 0); };
  if (std::sscanf(rest, "pipeline-%ld-of-%ld%n", &stage.index, &stage.count, &read) == 2) skip();
  if (std::sscanf(rest, "virtual-%ld%n", &stage.virtuals, &read) == 1) skip();
  if (std::sscanf(rest, "tensor-%ld-of-%ld", &tensor.index, &tensor.count) != 2) tensor = {};
  if (folderOfPart("", part) != "/" + name) return {};
  return part;
}

// One of the parts that there are checkpoints of.
std::optional<ModelPart> anyPartIn(const std::string& folder) {
  if (hasCheckpoint(folder)) return ModelPart{};
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (const auto part = partNamed(entry.path().filename())) return part;
  return {};
}

bool isCutAlike(const ModelPart& a, const ModelPart& b) {
  return a.tensor.count == b.tensor.count && a.stage.count == b.stage.count &&
         a.stage.virtuals == b.stage.virtuals;
}

// As options, of which those are left out that neither has.
std::string inWords(const ModelPart& part, const ModelPart& other) {
  std::string words = fmt::format("--tensor {}", part.tensor.count);
  const PipelineStage &mine = part.stage, &its = other.stage;
  if (std::max(mine.count, its.count) > 1) words += fmt::format(" --pipeline {}", mine.count);
  if (std::max(mine.virtuals, its.virtuals) > 1)
    words += fmt::format(" --virtual-stages {}", mine.virtuals);
  return words;
}

// What a checkpoint's maker says of it; no object if it is not to be read.
nlohmann::json metaOf(const fs::path& checkpoint) {
  std::ifstream file(checkpoint / "index.json");
  const auto index = nlohmann::json::parse(file, nullptr, false);
  if (!index.is_object() || !index.contains("meta") || !index["meta"].is_string()) return {};
  return nlohmann::json::parse(index["meta"].get<std::string>(), nullptr, false);
}

// By the numbers of its saves, the checkpoints of a part. One that is not to be read is none.
std::map<uint64_t, std::string> savesIn(const std::string& folder) {
  std::map<uint64_t, std::string> saves;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (!isCheckpoint(entry.path())) continue;
    const nlohmann::json meta = metaOf(entry.path());
    if (meta.is_object() && meta.contains("save") && meta["save"].is_number_unsigned())
      saves[meta["save"]] = entry.path();
  }
  return saves;
}

}  // namespace

std::string folderOfPart(const std::string& folder, const ModelPart& part) {
  const auto& [tensor, stage] = part;
  std::string name;
  if (stage.count > 1) name = fmt::format("/pipeline-{}-of-{}", stage.index, stage.count);
  if (stage.virtuals > 1) name += fmt::format("-virtual-{}", stage.virtuals);
  if (tensor.count > 1)
    name += fmt::format("{}tensor-{}-of-{}", name.empty() ? "/" : "-", tensor.index, tensor.count);
  return folder + name;
}

bool hasCheckpoint(const std::string& folder, const ModelPart& any) {
  if (any.count() == 1 ? hasCheckpoint(folder) : lastSaveOfAll(folder, any).has_value())
    return true;
  const std::optional<ModelPart> found = anyPartIn(folder);
  if (!found || isCutAlike(*found, any)) return false;
  throw Failure(Exit::kUsage,
                fmt::format("the checkpoint in {} is of {}, and this run is of {}; resume it with "
                            "the same, or export it and --init-from that",
                            folder, inWords(*found, any), inWords(any, *found)));
}

std::optional<uint64_t> lastSaveOfAll(const std::string& folder, const ModelPart& any,
                                      uint64_t end) {
  std::map<uint64_t, int64_t> having;
  for (int64_t i = 0; i < any.count(); ++i)
    for (const auto& [save, path] : savesIn(folderOfPart(folder, any.at(i)))) ++having[save];
  std::erase_if(having,
                [&](const auto& each) { return each.second != any.count() || each.first >= end; });
  if (having.empty()) return {};
  return having.rbegin()->first;
}

std::vector<int64_t> blocksOfSave(const std::string& folder, const ModelPart& any, uint64_t save) {
  const nlohmann::json meta = metaOf(pathOfSave(folder, any, save));
  const auto runs = static_cast<size_t>(any.stage.runs());
  const nlohmann::json said = meta.value("blocks", nlohmann::json());
  const auto isCount = [](const nlohmann::json& each) {
    return each.is_number_unsigned() && each > 0 && each < (int64_t{1} << 32);
  };
  if (!said.is_array() || said.size() != runs || !std::ranges::all_of(said, isCount)) return {};
  return said.get<std::vector<int64_t>>();
}

std::string pathOfSave(const std::string& folder, const ModelPart& part, uint64_t save) {
  return savesIn(folderOfPart(folder, part)).at(save);
}

bool setAside(const std::string& folder, const ModelPart& any, uint64_t save) {
  bool all = true;
  for (int64_t i = 0; i < any.count(); ++i)
    all = setAside(pathOfSave(folder, any.at(i), save)) && all;
  return all;
}

// lib/shard's folder says which is its last one in a file `latest`; the others it drops in time.
void goBackTo(const std::string& folder, const ModelPart& any, uint64_t save) {
  for (int64_t i = 0; i < any.count(); ++i) {
    const fs::path path = pathOfSave(folder, any.at(i), save);
    tools::ReportFile(path.parent_path() / "latest").write(path.filename().string() + '\n');
  }
}

}  // namespace weft::train
