// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network.h"

namespace weft::sim {

// Shifts of nodes, and inside all nodes of ranks by multiples of `step`, under which a job is the
// same: then one rank of each class stands for all that a shift makes of it, and one resource for
// its own, which carries what they would.
class Symmetry {
 public:
  // No shifts at all: each rank stands for itself.
  static Symmetry none(const Network& network);
  // All those that the fabric allows, the coarsest first: of those, a job may keep fewer.
  static std::vector<Symmetry> of(const Network& network);

  bool folds() const { return nodes_ * (localRanks_ / step_) > 1; }
  std::uint32_t classes() const { return step_; }
  std::uint32_t shifts() const { return nodes_ * (localRanks_ / step_); }
  // The first rank of a class is the one that is simulated.
  std::uint32_t classOf(std::uint32_t rank) const { return rank % localRanks_ % step_; }
  // What `rank` is to the first of its class, `peer` is to this.
  std::uint32_t seenFrom(std::uint32_t rank, std::uint32_t peer) const;
  // The other way round: who is to `rank` what `peer` is to the first of its class?
  std::uint32_t seenBy(std::uint32_t rank, std::uint32_t peer) const;
  // The rank that shift number `shift` makes of the first of a class.
  std::uint32_t moved(std::uint32_t ofClass, std::uint32_t shift) const;

  // Of a resource: the one that is simulated, and how many of what crosses that resource in the job
  // are one in the simulation.
  Use folded(Use use) const;

 private:
  Symmetry(std::uint32_t nodes, std::uint32_t localRanks, std::uint32_t step)
      : nodes_(nodes), localRanks_(localRanks), step_(step) {}
  void foldResources(const Network& network);

  std::uint32_t nodes_, localRanks_, step_;
  std::vector<Use> folded_;  // by a node's resource; empty: none is
};

}  // namespace weft::sim
