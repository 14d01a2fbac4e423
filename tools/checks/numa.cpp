// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/numa.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tools/checks/kinds.h"
#include "tools/checks/system_files.h"
#include "tools/checks/units.h"

namespace weft::checks {
namespace {

// "Node 0 MemTotal:       24684096 kB"
double memoryOf(const std::string& folder) {
  for (const std::string& line : readLines(folder + "/meminfo")) {
    std::istringstream words(line);
    std::string node, index, key;
    double kib = 0;
    if (words >> node >> index >> key >> kib && key == "MemTotal:") return kib * 1024;
  }
  return 0;
}

bool meet(const std::set<int>& a, const std::set<int>& b) {
  return std::ranges::any_of(a, [&](int i) { return b.contains(i); });
}

// The largest memory of a node that has cores; one without cores is no socket's.
double mostMemory(const Numa& numa) {
  double most = 0;
  for (const MemoryNode& node : numa.nodes) {
    if (!node.cores.empty()) most = std::max(most, node.bytes);
  }
  return most;
}

}  // namespace

Numa readNuma(const std::string& root) {
  const std::string nodes = root + "/sys/devices/system/node/";
  Numa numa;
  for (int index : parseList(readLine(nodes + "online"))) {
    const std::string folder = fmt::format("{}node{}", nodes, index);
    numa.nodes.push_back({index, parseList(readLine(folder + "/cpulist")), memoryOf(folder)});
  }
  numa.allowedCores = parseList(readField(root + "/proc/self/status", "Cpus_allowed_list"));
  numa.allowedNodes = parseList(readField(root + "/proc/self/status", "Mems_allowed_list"));
  return numa;
}

void checkNuma(const Numa& numa, HostReport& report) {
  report.add("numa.nodes", static_cast<double>(numa.nodes.size()), "");
  const double most = mostMemory(numa);
  for (const MemoryNode& node : numa.nodes) {
    if (node.cores.empty()) continue;
    if (node.bytes < most / 2)
      report.findings.push_back(
          makeFinding("numa-uneven", report.culprit(),
                      fmt::format("NUMA node {} has {} of memory, another {}", node.index,
                                  inBytes(node.bytes), inBytes(most)),
                      0.5));
    else if (meet(node.cores, numa.allowedCores) && !numa.allowedNodes.empty() &&
             !numa.allowedNodes.contains(node.index))
      report.findings.push_back(makeFinding(
          "numa-far-memory", report.culprit(),
          fmt::format("processes may use cores of NUMA node {} but not its memory", node.index),
          0.5));
  }
}

}  // namespace weft::checks
