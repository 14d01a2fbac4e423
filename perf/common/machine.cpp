// SPDX-License-Identifier: Apache-2.0
#include "perf/common/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

namespace weft::tools {
namespace {

Processor processorHere() {
  std::ifstream file("/proc/cpuinfo");
  return parseProcessor({std::istreambuf_iterator<char>(file), {}});
}

// "AuthenticAMD" -> "amd"
std::string shortVendor(const std::string& vendor) {
  static const std::map<std::string, std::string> known = {
      {"GenuineIntel", "intel"}, {"AuthenticAMD", "amd"}, {"", "unknown"}};
  const auto found = known.find(vendor);
  if (found != known.end()) return found->second;
  std::string plain;
  for (const char letter : vendor)
    plain += std::isalnum(static_cast<unsigned char>(letter)) != 0
                 ? static_cast<char>(std::tolower(static_cast<unsigned char>(letter)))
                 : '-';
  return plain;
}

std::string firstWord(const std::string& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

// As the kernel writes it, "32768K"; empty where it does not. (sysconf() tells a whole socket's.)
std::string cacheSize(const std::string& level) {
  for (int index = 0; index < 8; ++index) {
    const std::string cache = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    if (firstWord(cache + "level") == level) return firstWord(cache + "size");
  }
  return {};
}

}  // namespace

Processor parseProcessor(const std::string& cpuinfo) {
  Processor processor;
  const std::map<std::string, std::string*> wanted = {
      {"vendor_id", &processor.vendor},  {"CPU implementer", &processor.vendor},
      {"cpu family", &processor.family}, {"CPU architecture", &processor.family},
      {"model", &processor.model},       {"CPU part", &processor.model},
      {"model name", &processor.name}};
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto found = wanted.find(line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1));
    if (found == wanted.end() || !found->second->empty() || colon + 2 > line.size()) continue;
    *found->second = line.substr(colon + 2);
  }
  return processor;
}

std::string kindOf(const Processor& processor) {
  return fmt::format("{}-family-{}-model-{}", shortVendor(processor.vendor), processor.family,
                     processor.model);
}

std::string processorKind() { return kindOf(processorHere()); }

std::string processorName() {
  const std::string name = processorHere().name;
  return name.empty() ? "unknown processor" : name;
}

std::string machineText() {
  std::string text = fmt::format("{} ({}), {} cores", processorName(), processorKind(),
                                 sysconf(_SC_NPROCESSORS_ONLN));
  for (const char* level : {"2", "3"})
    if (const std::string size = cacheSize(level); !size.empty())
      text += fmt::format(", L{} {}", level, size);
  return text;
}

}  // namespace weft::tools
