// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/available.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

namespace weft::shm {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

// The number after the word `key` in a file of "key number" lines.
std::optional<std::uint64_t> readKey(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::uint64_t value = 0;
    if (word == key && file >> value) return value;
  }
  return {};
}

// A file that holds one number; "max" is none.
std::optional<std::uint64_t> readNumber(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return {};
}

std::uint64_t leftInHost() {
  const auto kb = readKey("/proc/meminfo", "MemAvailable:");
  return kb ? *kb * 1024 : kUnknown;
}

std::uint64_t leftInCgroup(const std::string& directory) {
  const auto limit = readNumber(directory + "/memory.max");
  const auto used = readNumber(directory + "/memory.current");
  if (!limit || !used) return kUnknown;
  const std::uint64_t file = readKey(directory + "/memory.stat", "file").value_or(0);
  const std::uint64_t shmem = readKey(directory + "/memory.stat", "shmem").value_or(0);
  const std::uint64_t cache = file - std::min(file, shmem);  // the kernel gives it up when asked
  const std::uint64_t held = *used - std::min(*used, cache);
  return *limit - std::min(*limit, held);
}

// The path in the "0::/path" line of cgroup v2.
std::string ownCgroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::/")) return line.substr(3);
  return "/";
}

}  // namespace

Available availableMemory() {
  Available least{leftInHost(), "this host"};
  for (std::string path = ownCgroup();; path.resize(path.rfind('/'))) {
    const std::uint64_t left = leftInCgroup("/sys/fs/cgroup" + path);
    if (left < least.bytes) least = {left, "cgroup " + path};
    if (path.empty() || path == "/") return least;
  }
}

}  // namespace weft::shm
