// SPDX-License-Identifier: Apache-2.0
#include "topology/numa.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/folder.h"
#include "base/no_fork.h"
#include "base/number.h"
#include "base/text.h"

namespace weft::topology {
namespace {

constexpr const char* kNodes = "/sys/devices/system/node";

using Nodes = std::map<int, cpu_set_t>;

bool isIn(const cpu_set_t& set, std::size_t core) { return CPU_ISSET(core, &set); }

// Those that have cores.
Nodes nodesIn(const std::string& folder) {
  Nodes nodes;
  const cpu_set_t some = coresOfList(firstLine(text(folder, "/has_cpu")));
  for (std::size_t node = 0; CPU_COUNT(&some) > 1 && node < CPU_SETSIZE; ++node)
    if (isIn(some, node))
      nodes[static_cast<int>(node)] =
          coresOfList(firstLine(text(folder, "/node", node, "/cpulist")));
  return nodes;
}

const Nodes& nodesHere() {
  return processWide<const Nodes>([] { return nodesIn(kNodes); });
}

int nodeOf(const cpu_set_t& cores, const Nodes& nodes) {
  for (const auto& [node, its] : nodes) {
    cpu_set_t both;
    CPU_AND(&both, &its, &cores);
    if (CPU_COUNT(&both) != 0) return CPU_EQUAL(&both, &cores) ? node : -1;
  }
  return -1;
}

}  // namespace

std::size_t numaNodes() { return nodesHere().empty() ? 1 : nodesHere().size(); }

int numaNodeOf(const cpu_set_t& cores) { return nodeOf(cores, nodesHere()); }

int numaNodeOf(const cpu_set_t& cores, const std::string& folder) {
  return nodeOf(cores, nodesIn(folder));
}

cpu_set_t coresOfList(const std::string& list) {
  cpu_set_t set, none;
  CPU_ZERO(&set);
  CPU_ZERO(&none);
  for (std::string_view left = list; !left.empty();) {
    const std::string_view range = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), range.size() + 1));
    const std::size_t dash = range.find('-');
    std::size_t first = 0, last = 0;
    if (!parseNumber(range.substr(0, dash), &first)) return none;
    last = first;
    if (dash != std::string_view::npos && !parseNumber(range.substr(dash + 1), &last)) return none;
    if (last >= CPU_SETSIZE) return none;
    for (; first <= last; ++first) CPU_SET(first, &set);
  }
  return set;
}

}  // namespace weft::topology
