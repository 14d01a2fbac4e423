// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "shard/checkpoint.h"
#include "training.h"

namespace weft::test {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = fs::temp_directory_path() / "weft-checkpoint-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code none;
    fs::remove_all(path_, none);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string contentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

inline void fillFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// The path of the last checkpoint in a folder.
inline std::string latestIn(const std::string& dir) {
  std::string name = contentOf(dir + "/latest");
  while (name.ends_with('\n')) name.pop_back();
  return dir + "/" + name;
}

inline std::set<std::string> foldersIn(const std::string& dir) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir))
    if (entry.is_directory()) names.insert(entry.path().filename());
  return names;
}

inline Training savingAt(Training run, int step, const std::string& dir) {
  run.steps = step;
  run.afterStep = [=](ShardedOptimizer& shard, int steps) {
    return steps == step ? saveCheckpoint(shard, dir, R"({"rows": 12})") : Status();
  };
  return run;
}

inline Training loading(Training run, int step, const std::string& dir) {
  run.first = step;
  run.resume = [=](ShardedOptimizer& shard) -> Status {
    std::string meta;
    WEFT_TRY(loadCheckpoint(shard, dir, &meta));
    EXPECT_EQ(meta, R"({"rows": 12})");
    EXPECT_EQ(shard.state().steps, step);
    return {};
  };
  return run;
}

}  // namespace weft::test
