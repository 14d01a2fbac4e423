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

// Of how many parts there are checkpoints; 0: of none.
int64_t partsIn(const std::string& folder) {
  if (hasCheckpoint(folder)) return 1;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    int64_t index = 0, count = 0;
    const std::string name = entry.path().filename();
    if (std::sscanf(name.c_str(), "tensor-%ld-of-%ld", &index, &count) == 2 && count > 1)
      return count;
  }
  return 0;
}

// By the numbers of its saves, the checkpoints of a part. One that is not to be read is none.
std::map<uint64_t, std::string> savesIn(const std::string& folder) {
  std::map<uint64_t, std::string> saves;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".tmp") continue;
    std::ifstream file(entry.path() / "index.json");
    const auto index = nlohmann::json::parse(file, nullptr, false);
    if (!index.is_object() || !index.contains("meta") || !index["meta"].is_string()) continue;
    const auto meta = nlohmann::json::parse(index["meta"].get<std::string>(), nullptr, false);
    if (meta.is_object() && meta.contains("save") && meta["save"].is_number_unsigned())
      saves[meta["save"]] = entry.path();
  }
  return saves;
}

}  // namespace

std::string folderOfPart(const std::string& folder, TensorPart part) {
  if (part.count == 1) return folder;
  return fmt::format("{}/tensor-{}-of-{}", folder, part.index, part.count);
}

bool hasCheckpoint(const std::string& folder, int64_t parts) {
  if (parts == 1 ? hasCheckpoint(folder) : lastSaveOfAll(folder, parts).has_value()) return true;
  const int64_t found = partsIn(folder);
  if (found != 0 && found != parts)
    throw Failure(Exit::kUsage,
                  fmt::format("the checkpoint in {} is of --tensor {}, and this run is of --tensor "
                              "{}; resume it with the same, or export it and --init-from that",
                              folder, found, parts));
  return false;
}

std::optional<uint64_t> lastSaveOfAll(const std::string& folder, int64_t parts) {
  std::map<uint64_t, int64_t> having;
  for (int64_t i = 0; i < parts; ++i)
    for (const auto& [save, path] : savesIn(folderOfPart(folder, {i, parts}))) ++having[save];
  std::erase_if(having, [&](const auto& each) { return each.second != parts; });
  if (having.empty()) return {};
  return having.rbegin()->first;
}

std::string pathOfSave(const std::string& folder, TensorPart part, uint64_t save) {
  return savesIn(folderOfPart(folder, part)).at(save);
}

// lib/shard's folder says which is its last one in a file `latest`; the others it drops in time.
void goBackTo(const std::string& folder, int64_t parts, uint64_t save) {
  for (int64_t i = 0; i < parts; ++i) {
    const fs::path path = pathOfSave(folder, {i, parts}, save);
    tools::ReportFile(path.parent_path() / "latest").write(path.filename().string() + '\n');
  }
}

}  // namespace weft::train
