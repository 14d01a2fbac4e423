// SPDX-License-Identifier: Apache-2.0
#include "tools/train/checkpoint_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace weft::train {
namespace {

namespace fs = std::filesystem;

std::string nameOfLast(const fs::path& folder) {
  std::string name;
  std::ifstream(folder / "latest") >> name;
  return name;
}

}  // namespace

bool hasCheckpoint(const std::string& folder) {
  std::error_code none;
  return fs::exists(folder + "/latest", none) || fs::exists(folder + "/index.json", none);
}

bool isCheckpoint(const fs::path& path) {
  const std::string name = path.filename();
  std::error_code none;
  return name.starts_with("step-") &&
         name.find_first_not_of("0123456789.", 5) == std::string::npos &&
         fs::exists(path / "index.json", none);
}

std::string checkpointBeforeLast(const std::string& folder) {
  const std::string last = nameOfLast(folder);
  if (last.empty()) return {};
  fs::path newest;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (isCheckpoint(*at) && at->path().filename() != last) newest = std::max(newest, at->path());
  return newest;
}

bool setAside(const std::string& checkpoint) {
  std::string aside = checkpoint + ".damaged";
  std::error_code error;
  for (int again = 2; fs::exists(aside, error); ++again)
    aside = checkpoint + ".damaged" + std::to_string(again);
  fs::rename(checkpoint, aside, error);
  return !error;
}

bool setLastAside(const std::string& folder) {
  const std::string name = nameOfLast(folder);
  return !name.empty() && setAside(folder + "/" + name);
}

bool isSameFolder(const std::string& a, const std::string& b) {
  return !b.empty() && fs::weakly_canonical(a + "/") == fs::weakly_canonical(b + "/");
}

}  // namespace weft::train
