// SPDX-License-Identifier: Apache-2.0
#include "tune/processor.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "base/folder.h"
#include "base/number.h"
#include "base/text.h"
#include "topology/numa.h"

namespace weft::tune {
namespace {

constexpr const char* kCpus = "/sys/devices/system/cpu/cpu";

long configured(int level) {
  return level == 2 ? sysconf(_SC_LEVEL2_CACHE_SIZE) : sysconf(_SC_LEVEL3_CACHE_SIZE);
}

std::string siblingsOf(int core) {
  return firstLine(text(kCpus, core, "/topology/thread_siblings_list"));
}

bool isIn(const cpu_set_t& set, int core) {
  return CPU_ISSET(static_cast<std::size_t>(core), &set);
}

int nodeOf(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(core), &one);
  return topology::numaNodeOf(one);
}

}  // namespace

std::size_t bytesOfCacheSize(const std::string& text) {
  std::size_t bytes = 0, at = 0;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0 &&
         bytes < (std::size_t{1} << 40))
    bytes = bytes * 10 + static_cast<std::size_t>(text[at++] - '0');
  if (at < text.size() && text[at] == 'K') return bytes << 10;
  return at < text.size() && text[at] == 'M' ? bytes << 20 : bytes;
}

std::size_t coresOfMask(std::string_view mask) {
  std::size_t cores = 0;
  for (const char digit : mask) {
    std::uint32_t bits = 0;
    if (parseNumber({&digit, 1}, &bits, 16)) cores += static_cast<std::size_t>(std::popcount(bits));
  }
  return cores;
}

std::size_t cacheBytes(int level) {
  for (int index = 0; index < 8; ++index) {
    const std::string cache = text(kCpus, "0/cache/index", index, "/");
    if (firstLine(cache + "level") != std::to_string(level)) continue;
    if (const std::size_t bytes = bytesOfCacheSize(firstLine(cache + "size")); bytes != 0)
      return bytes;
  }
  const long bytes = configured(level);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : level == 2 ? std::size_t{1} << 20 : 0;
}

std::size_t coresOfLastCache() {
  std::size_t cores = 1;
  int last = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string cache = text(kCpus, "0/cache/index", index, "/");
    int level = 0;
    if (!parseNumber(firstLine(cache + "level"), &level) || level <= last) continue;
    last = level;
    cores = std::max<std::size_t>(1, coresOfMask(firstLine(cache + "shared_cpu_map")));
  }
  return cores;
}

// The kernel keeps to the container's cores whatever is asked for, and a launcher's binding holds
// for this thread only as long as it wants.
int moveToOtherCore(int core, Node node) {
  cpu_set_t allowed;
  std::memset(&allowed, 0xff, sizeof(allowed));
  if (core < 0 || sched_setaffinity(0, sizeof(allowed), &allowed) != 0 ||
      sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
    return -1;
  const std::string own = siblingsOf(core);
  for (int step = 1; step < CPU_SETSIZE; ++step) {
    const int other = (core + step) % CPU_SETSIZE;
    if (!isIn(allowed, other) || (!own.empty() && siblingsOf(other) == own)) continue;
    if (node != Node::Any && (nodeOf(core) == nodeOf(other)) != (node == Node::Same)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(other), &one);
    return sched_setaffinity(0, sizeof(one), &one) == 0 ? other : -1;
  }
  return -1;
}

std::string processorName() {
  std::string model;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && model.empty();) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos)
      model = line.substr(colon + 2);
  }
  utsname system{};
  if (model.empty() && uname(&system) == 0) model = system.machine;
  return text(model, ", ", sysconf(_SC_NPROCESSORS_CONF), " processors");
}

}  // namespace weft::tune
