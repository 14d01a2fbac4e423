// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace weft::topology {

// What one direction of a link carries, and how long a small message takes on it.
struct LinkSpeed {
  double gbit = 0;  // a second
  double us = 0;
  bool operator==(const LinkSpeed&) const = default;
};

// Ranks of a node, counted from 0 in each, that a link joins.
struct MeshLink {
  std::uint32_t a = 0;
  std::uint32_t b = 0;  // > a
  LinkSpeed speed;
  bool operator==(const MeshLink&) const = default;
};

// A way out of each node, such as a NIC, shared by some of its ranks.
struct Rail {
  std::string name;
  LinkSpeed speed;
  std::vector<std::uint32_t> ranks;  // sorted; of a node
  bool operator==(const Rail&) const = default;
};

struct FabricNode {
  std::string name;
  std::uint32_t ranks = 0;
  bool operator==(const FabricNode&) const = default;
};

// Nodes and what joins their ranks: memory, mesh links inside, rails between. All nodes are alike
// but for the number of their ranks: a smaller one has the links of the ranks that it has.
struct Fabric {
  std::string name;
  std::vector<FabricNode> nodes;
  std::optional<LinkSpeed> memory;  // the ranks of a node share memory
  std::vector<MeshLink> mesh;
  std::vector<Rail> rails;
  bool operator==(const Fabric&) const = default;

  std::uint32_t ranks() const;
  std::uint32_t mostRanksOfANode() const;
  // The direct way between two ranks of a node: mesh link or memory, whichever has the higher rate.
  std::optional<LinkSpeed> inside(std::uint32_t a, std::uint32_t b) const;
  // What one rank of a node has of the rails when all use them: rates add up, the slowest latency
  // counts. Nothing where it is on no rail.
  std::optional<LinkSpeed> outside(std::uint32_t rank) const;
  // All rails that a rank of a node is on together: what it has when it uses them alone.
  double railGbitOf(std::uint32_t rank) const;
  // All rails of a node together.
  double railGbit() const;
};

// Does it describe a job that has so many ranks on each host, hosts in the order of their ranks? An
// error says how they differ.
Status checkFabricFits(const Fabric& fabric, const std::vector<std::uint32_t>& ranksOfHosts);

}  // namespace weft::topology
