// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "topology/fabric.h"

namespace weft::sim {

inline constexpr std::uint32_t kAllNodes = ~0u;

// A cable or a NIC that is not as the file says.
struct Change {
  std::uint32_t node = kAllNodes;
  std::string link;   // "0-1", a pair of a node's ranks, or a rail's name
  double factor = 1;  // of its rate; 0: it is gone
};

// A share of a message's bytes that a resource carries.
struct Use {
  std::uint32_t resource = 0;
  double weight = 1;
};

// How a rank reaches another.
struct Route {
  std::vector<Use> uses;
  double latencyNs = 0;
  bool byMemory = false;  // a core writes it; nothing else carries it
  bool overRails = false;
};

// A fabric as resources with rates: of each node, each direction of a mesh link, each rail outwards
// and inwards, and its memory. Nodes are joined by a switch that carries whatever their rails do.
//
// Ranks are joined as weft joins them: by their cable or by memory, whichever is faster, else by rails,
// and nobody forwards for others.
class Network {
 public:
  // `memory`: what a node's memory carries, in bytes a nanosecond, 0: as much as its cores ask for.
  static Status make(const topology::Fabric& fabric, const std::vector<Change>& changes,
                     double memory, Network* out);

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(nodeOf_.size()); }
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(fabric_.nodes.size()); }
  std::uint32_t ranksOfNode(std::uint32_t node) const { return fabric_.nodes[node].ranks; }
  std::uint32_t nodeOf(std::uint32_t rank) const { return nodeOf_[rank]; }
  std::uint32_t rankOf(std::uint32_t node, std::uint32_t local) const {
    return first_[node] + local;
  }
  std::uint32_t mostRanksOfANode() const { return most_; }
  std::uint32_t localRankOf(std::uint32_t rank) const { return rank - first_[nodeOf_[rank]]; }
  const std::vector<std::uint32_t>& nodesOfRanks() const { return nodeOf_; }
  // Ranks of a group are of one node and on the same rails: equal numbers, ways out and in.
  std::uint32_t groupOf(std::uint32_t rank) const {
    return nodeOf_[rank] * most_ + groupOfLocal_[localRankOf(rank)];
  }
  const topology::Fabric& fabric() const { return fabric_; }

  bool joinsByMemory(std::uint32_t from, std::uint32_t to) const;
  // False if they are joined by nothing.
  bool findRoute(std::uint32_t from, std::uint32_t to, Route* route) const;
  // The half of a route over rails that is this rank's. False: it is on none that carries anything.
  bool addRails(std::uint32_t rank, bool out, Route* route) const;
  // InvalidArgument names two ranks that nothing joins.
  Status checkConnected() const;

  // Resources are numbered node by node, equally in each.
  std::uint32_t resourcesOfNode() const { return perNode_; }
  std::uint32_t resources() const { return perNode_ * nodes(); }
  double rateOf(std::uint32_t resource) const;  // bytes a nanosecond
  std::string nameOf(std::uint32_t resource) const;
  std::uint32_t memoryOf(std::uint32_t node) const { return node * perNode_ + perNode_ - 1; }
  bool limitsMemory() const { return memory_ > 0; }

  // What leaves a rank, or a node, at most, and what comes in: in bytes a nanosecond.
  struct Ports {
    double out = 0, in = 0;
  };
  Ports portsOfRank(std::uint32_t rank) const;
  Ports portsOfNode(std::uint32_t node) const;
  Ports portsOfRail(std::uint32_t node, std::uint32_t r) const;
  double rateOfMesh(std::uint32_t from, std::uint32_t to) const;  // 0: there is no link

  // Are the nodes alike, and would they be if each rank of a node were the one `step` further on?
  bool isSymmetric() const;
  bool isSymmetricBy(std::uint32_t step) const;
  // Which resource of a node takes the place of another one then.
  std::uint32_t shifted(std::uint32_t resourceOfNode, std::uint32_t step) const;

 private:
  Status apply(const Change& change);
  std::uint32_t indexOfMesh(std::uint32_t a, std::uint32_t b) const;
  const topology::Rail& rail(std::uint32_t r) const { return fabric_.rails[r]; }
  std::uint32_t railOut(std::uint32_t node, std::uint32_t r) const {
    return node * perNode_ + 2 * static_cast<std::uint32_t>(fabric_.mesh.size()) + 2 * r;
  }
  std::uint32_t shiftedRail(std::uint32_t r, std::uint32_t step) const;

  topology::Fabric fabric_;
  double memory_ = 0;
  std::uint32_t perNode_ = 0, most_ = 0;  // resources, and ranks, of a node
  std::vector<std::uint32_t> nodeOf_, first_;
  std::vector<std::uint32_t> meshOf_;                // [a * most_ + b]: the resource of a node
  std::vector<std::vector<std::uint32_t>> railsOf_;  // by a node's rank
  std::vector<std::uint32_t> groupOfLocal_;
  std::map<std::uint32_t, double> changed_;  // rates by resource
};

}  // namespace weft::sim
