// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/temporary_folder.h"

namespace weft::test {

namespace fs = std::filesystem;

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

}  // namespace weft::test
