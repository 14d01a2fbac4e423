// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/report.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <ctime>
#include <fstream>

namespace weft::perf {
namespace {

template <std::size_t size>
void copyText(char (&target)[size], const std::string& text) {
  std::strncpy(target, text.c_str(), size - 1);
}

std::string hostName() {
  utsname system{};
  uname(&system);
  return system.nodename;
}

// The processor's model as Linux names it, else its architecture.
std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname system{};
  uname(&system);
  return system.machine;
}

}  // namespace

RankInfo rankInfo(Team& team) {
  RankInfo info{};
  info.rank = team.rank();
  info.group = team.color();
  info.pid = static_cast<int>(getpid());
  int hostRanks = 0;
  weft::check(weftCommLocalRank(team.world(), &info.device, &hostRanks), team.world());
  copyText(info.host, hostName());
  copyText(info.processor, processorName());
  const weftMemStats_t memory = team.group().memory();
  info.shared = memory.shared;
  info.plans = memory.plans;
  info.other = memory.other;
  return info;
}

Memory largestMemory(const std::vector<RankInfo>& ranks) {
  Memory largest;
  for (const RankInfo& rank : ranks) {
    const Memory memory{rank.shared, rank.plans, rank.other};
    if (memory.total() > largest.total()) largest = memory;
  }
  return largest;
}

Figures figuresOf(const Problem& problem, const Measurement& measurement) {
  const double gigabytes = static_cast<double>(problem.bytes()) / 1e9;
  const double algBw = measurement.seconds > 0 ? gigabytes / measurement.seconds : 0;
  return {measurement.seconds * 1e6, algBw, algBw * problem.collective->busFactor(problem.ranks)};
}

void Summary::add(const Row& row) {
  for (const auto* measurement : {&row.outOfPlace, &row.inPlace}) {
    if (!*measurement) continue;
    wrong += (*measurement)->wrong.value_or(0);
    busBwSum += figuresOf(row.problem, **measurement).busBw;
    ++busBwCount;
  }
}

bool Summary::fastEnough() const {
  constexpr double kNoise = 0.9;
  return !checksBusBw() || averageBusBw() >= requiredBusBw * kNoise;
}

std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return text.data();
}

}  // namespace weft::perf
