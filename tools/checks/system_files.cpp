// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/system_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace weft::checks {
namespace {

namespace fs = std::filesystem;

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

bool contains(const std::string& list, std::string_view wanted) {
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == wanted) return true;
  }
  return false;
}

// "BASE/a/b", "BASE/a", "BASE".
void addUpwards(const std::string& base, std::string path, std::vector<std::string>* folders) {
  while (true) {
    while (path.ends_with('/')) path.pop_back();
    folders->push_back(base + path);
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    path.resize(slash);
  }
}

}  // namespace

std::string readLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<std::string> readLines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::optional<double> readNumber(const std::string& path) {
  std::ifstream file(path);
  double number = 0;
  if (file >> number) return number;
  return {};
}

std::vector<std::string> listFolder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename());
  std::ranges::sort(names);
  return names;
}

std::map<std::string, double> readKeys(const std::string& path) {
  std::map<std::string, double> numbers;
  for (const std::string& line : readLines(path)) {
    std::istringstream words(line);
    std::string key;
    double number = 0;
    if (!(words >> key >> number)) continue;
    if (key.ends_with(':')) key.pop_back();
    numbers[key] = number;
  }
  return numbers;
}

std::string readField(const std::string& path, std::string_view key) {
  for (const std::string& line : readLines(path)) {
    const std::size_t colon = line.find(':');
    if (colon != line.npos && trimmed(line.substr(0, colon)) == key)
      return trimmed(line.substr(colon + 1));
  }
  return {};
}

std::set<int> parseList(const std::string& list) {
  constexpr int kMost = 1 << 16;
  std::set<int> numbers;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream range(part);
    int first = 0;
    if (!(range >> first)) break;
    int last = first;
    if (range.peek() == '-' && !(range.ignore() >> last)) break;
    for (int i = std::max(first, 0); i <= std::min(last, kMost); ++i) numbers.insert(i);
  }
  return numbers;
}

// Lines are "ID:CONTROLLERS:PATH"; version 2 is "0::PATH".
std::vector<std::string> cgroupFolders(const std::string& root, std::string_view controller) {
  const std::string mount = root + "/sys/fs/cgroup";
  std::vector<std::string> folders;
  for (const std::string& line : readLines(root + "/proc/self/cgroup")) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty())
      addUpwards(mount, path, &folders);
    else if (contains(controllers, controller))
      addUpwards(mount + "/" + controllers, path, &folders);
  }
  return folders;
}

}  // namespace weft::checks
