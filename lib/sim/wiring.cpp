// SPDX-License-Identifier: Apache-2.0
#include "sim/wiring.h"

#include <algorithm>
#include <map>

namespace weft::sim {
namespace {

// The rails of a node's rank that carry something.
using Rails = std::vector<std::uint32_t>;

Rails railsOf(const Network& network, std::uint32_t node, std::uint32_t local) {
  Rails rails;
  for (std::uint32_t r = 0; r < network.fabric().rails.size(); ++r)
    if (std::ranges::binary_search(network.fabric().rails[r].ranks, local) &&
        network.portsOfRail(node, r).out > 0)
      rails.push_back(r);
  return rails;
}

bool meet(const Rails& a, const Rails& b) {
  return std::ranges::any_of(a, [&](std::uint32_t r) { return std::ranges::count(b, r) > 0; });
}

void addPorts(const Network& network, std::uint32_t node, forest::Graph* graph) {
  std::map<Rails, std::vector<std::uint32_t>> groups;
  std::map<std::uint32_t, double> members;  // of each rail
  for (std::uint32_t local = 0; local < network.ranksOfNode(node); ++local) {
    const Rails rails = railsOf(network, node, local);
    for (const std::uint32_t r : rails) ++members[r];
    if (!rails.empty()) groups[rails].push_back(network.rankOf(node, local));
  }
  for (const auto& [rails, ranks] : groups) {
    double all = 0, most = 0, us = 0;
    for (const std::uint32_t r : rails) {
      us = std::max(us, network.fabric().rails[r].speed.us);
      all += network.portsOfRail(node, r).out;
      most = std::max(most, members[r]);
    }
    const bool isApart = std::ranges::none_of(groups, [&, &rails = rails](const auto& other) {
      return other.first != rails && meet(other.first, rails);
    });
    if (isApart) {
      graph->ports.push_back({ranks, all, us * 1e3});
      continue;
    }
    for (const std::uint32_t rank : ranks) graph->ports.push_back({{rank}, all / most, us * 1e3});
  }
}

void addLinks(const Network& network, std::uint32_t node, forest::Graph* graph) {
  const std::uint32_t ranks = network.ranksOfNode(node);
  for (std::uint32_t a = 0; a < ranks; ++a)
    for (std::uint32_t b = 0; b < ranks; ++b) {
      if (a == b) continue;
      const std::uint32_t from = network.rankOf(node, a), to = network.rankOf(node, b);
      Route route;
      if (network.joinsByMemory(from, to))
        graph->links.push_back({from, to, forest::kUnlimitedRate, 0});
      else if (const double rate = network.rateOfMesh(from, to);
               rate > 0 && network.findRoute(from, to, &route))
        graph->links.push_back({from, to, rate, route.latencyNs});
    }
}

}  // namespace

forest::Graph graphOf(const Network& network) {
  forest::Graph graph;
  graph.ranks = network.ranks();
  graph.nodeOf = network.nodesOfRanks();
  for (std::uint32_t node = 0; node < network.nodes(); ++node) {
    addLinks(network, node, &graph);
    addPorts(network, node, &graph);
  }
  return graph;
}

}  // namespace weft::sim
