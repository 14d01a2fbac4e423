// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"

#include <dirent.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <string_view>

namespace weft::inline base {

int listFolder(const std::string& path, std::vector<std::string>* names) {
  struct Close {
    void operator()(DIR* folder) const { ::closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> folder(::opendir(path.c_str()));
  if (!folder) return errno;
  for (errno = 0; const dirent* const entry = ::readdir(folder.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names->emplace_back(name);
  }
  return errno;
}

std::string firstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace weft::inline base
