// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace weft::topology {

std::uint32_t Fabric::ranks() const {
  return std::accumulate(nodes.begin(), nodes.end(), 0u,
                         [](std::uint32_t sum, const FabricNode& n) { return sum + n.ranks; });
}

std::uint32_t Fabric::mostRanksOfANode() const {
  std::uint32_t most = 0;
  for (const FabricNode& node : nodes) most = std::max(most, node.ranks);
  return most;
}

std::optional<LinkSpeed> Fabric::inside(std::uint32_t a, std::uint32_t b) const {
  std::optional<LinkSpeed> best = memory;
  for (const MeshLink& link : mesh) {
    const bool joins = link.a == std::min(a, b) && link.b == std::max(a, b);
    if (joins && (!best || link.speed.gbit > best->gbit)) best = link.speed;
  }
  return best;
}

std::optional<LinkSpeed> Fabric::outside(std::uint32_t rank) const {
  std::optional<LinkSpeed> sum;
  for (const Rail& rail : rails) {
    if (!std::ranges::binary_search(rail.ranks, rank)) continue;
    if (!sum) sum = LinkSpeed{};
    sum->gbit += rail.speed.gbit / static_cast<double>(rail.ranks.size());
    sum->us = std::max(sum->us, rail.speed.us);
  }
  return sum;
}

double Fabric::railGbit() const {
  return std::accumulate(rails.begin(), rails.end(), 0.0,
                         [](double sum, const Rail& r) { return sum + r.speed.gbit; });
}

double Fabric::railGbitOf(std::uint32_t rank) const {
  double sum = 0;
  for (const Rail& rail : rails)
    if (std::ranges::find(rail.ranks, rank) != rail.ranks.end()) sum += rail.speed.gbit;
  return sum;
}

Status checkFabricFits(const Fabric& fabric, const std::vector<std::uint32_t>& ranksOfHosts) {
  const auto differs = [](const std::string& how) {
    return Status::error(Code::InvalidArgument, "the topology file describes another job: ", how,
                         "; fix: WEFT_TOPO_FILE for these hosts, or none");
  };
  if (fabric.nodes.size() != ranksOfHosts.size())
    return differs(
        text("it has ", fabric.nodes.size(), " nodes, the job ", ranksOfHosts.size(), " hosts"));
  for (std::size_t i = 0; i < ranksOfHosts.size(); ++i) {
    const FabricNode& node = fabric.nodes[i];
    if (node.ranks != ranksOfHosts[i])
      return differs(text("its node ", node.name, " has ", node.ranks, " ranks, host ", i,
                          " of the job ", ranksOfHosts[i]));
  }
  return {};
}

}  // namespace weft::topology
