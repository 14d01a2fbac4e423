// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/format.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/rank_list.h"
#include "base/text.h"

namespace weft::topo {
namespace {

std::string formatNumber(double value) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

std::string formatSpeed(const topology::LinkSpeed& speed) {
  return text("gbit ", formatNumber(speed.gbit), " us ", formatNumber(speed.us));
}

// Nodes of one size that follow each other share a line.
std::string formatNodes(const std::vector<topology::FabricNode>& nodes) {
  std::string lines;
  for (std::size_t i = 0; i < nodes.size();) {
    lines += "nodes";
    std::size_t j = i;
    for (; j < nodes.size() && nodes[j].ranks == nodes[i].ranks; ++j) lines += " " + nodes[j].name;
    lines += text(" ranks ", nodes[i].ranks, "\n");
    i = j;
  }
  return lines;
}

// As "mesh all" makes them, in its order.
bool isFull(const topology::Fabric& fabric) {
  const std::size_t ranks = fabric.mostRanksOfANode();
  return fabric.mesh.size() == ranks * (ranks - 1) / 2 && !fabric.mesh.empty() &&
         std::ranges::is_sorted(fabric.mesh, {},
                                [](const topology::MeshLink& l) { return std::pair(l.a, l.b); }) &&
         std::ranges::all_of(fabric.mesh, [&](const topology::MeshLink& link) {
           return link.speed == fabric.mesh.front().speed;
         });
}

}  // namespace

std::string formatFabric(const topology::Fabric& fabric) {
  std::string lines = "weft-topology 1\n";
  if (!fabric.name.empty()) lines += text("name ", fabric.name, "\n");
  lines += formatNodes(fabric.nodes);
  if (fabric.memory) lines += text("memory ", formatSpeed(*fabric.memory), "\n");
  if (isFull(fabric)) {
    lines += text("mesh all ", formatSpeed(fabric.mesh.front().speed), "\n");
  } else {
    for (const topology::MeshLink& link : fabric.mesh)
      lines += text("mesh ", link.a, "-", link.b, " ", formatSpeed(link.speed), "\n");
  }
  for (const topology::Rail& rail : fabric.rails)
    lines += text("rail ", rail.name, " ", formatSpeed(rail.speed), " ranks ",
                  rankRanges(rail.ranks), "\n");
  return lines;
}

}  // namespace weft::topo
