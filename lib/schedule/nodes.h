// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weft::schedule {

// Which ranks share a node. Nodes may differ in size and ranks may be anywhere.
//
// A *rail* is what crosses nodes: there are as many as the largest node has ranks, and on every
// node one rank stands on each rail; on a smaller node some ranks stand on several.
class Nodes {
 public:
  // By rank: the number of its node, 0 .. N-1.
  explicit Nodes(const std::vector<uint32_t>& nodeOf) : node_(nodeOf), localRank_(nodeOf.size()) {
    for (uint32_t r = 0; r < nodeOf.size(); ++r) {
      if (nodeOf[r] >= members_.size()) members_.resize(nodeOf[r] + 1);
      localRank_[r] = size(nodeOf[r]);
      members_[nodeOf[r]].push_back(r);
      rails_ = std::max(rails_, size(nodeOf[r]));
    }
  }
  static std::vector<uint32_t> even(uint32_t localRanks, uint32_t nodes) {
    std::vector<uint32_t> nodeOf(localRanks * nodes);
    for (uint32_t r = 0; r < nodeOf.size(); ++r) nodeOf[r] = r / localRanks;
    return nodeOf;
  }

  uint32_t ranks() const { return static_cast<uint32_t>(node_.size()); }
  uint32_t count() const { return static_cast<uint32_t>(members_.size()); }
  uint32_t rails() const { return rails_; }
  uint32_t size(uint32_t node) const { return static_cast<uint32_t>(members_[node].size()); }
  uint32_t nodeOf(uint32_t rank) const { return node_[rank]; }
  uint32_t localRankOf(uint32_t rank) const { return localRank_[rank]; }
  const std::vector<uint32_t>& members(uint32_t node) const { return members_[node]; }

  // Who stands on rail `rail` on that node.
  uint32_t onRail(uint32_t node, uint32_t rail) const { return members_[node][rail % size(node)]; }
  bool standsOn(uint32_t rank, uint32_t rail) const { return onRail(node_[rank], rail) == rank; }
  // A rank's own rail, on which what is for it arrives.
  uint32_t railOf(uint32_t rank) const { return localRank_[rank]; }

 private:
  std::vector<uint32_t> node_, localRank_;
  std::vector<std::vector<uint32_t>> members_;
  uint32_t rails_ = 0;
};

}  // namespace weft::schedule
