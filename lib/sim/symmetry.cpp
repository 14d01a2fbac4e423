// SPDX-License-Identifier: Apache-2.0
#include "sim/symmetry.h"

#include <algorithm>

namespace weft::sim {

Symmetry Symmetry::none(const Network& network) { return {1, network.ranks(), network.ranks()}; }

std::vector<Symmetry> Symmetry::of(const Network& network) {
  std::vector<Symmetry> all;
  if (!network.isSymmetric()) return all;
  const std::uint32_t localRanks = network.ranksOfNode(0);
  for (std::uint32_t step = 1; step <= localRanks; ++step) {
    if (localRanks % step != 0 || !network.isSymmetricBy(step)) continue;
    Symmetry symmetry(network.nodes(), localRanks, step);
    symmetry.foldResources(network);
    if (symmetry.folds()) all.push_back(symmetry);
  }
  return all;
}

void Symmetry::foldResources(const Network& network) {
  for (std::uint32_t i = 0; i < network.resourcesOfNode(); ++i) {
    Use use{i, 0};
    for (std::uint32_t shift = 0; shift < localRanks_; shift += step_) {
      const std::uint32_t to = network.shifted(i, shift);
      use.resource = std::min(use.resource, to);
      use.weight += to == i ? 1 : 0;
    }
    folded_.push_back(use);
  }
}

std::uint32_t Symmetry::seenFrom(std::uint32_t rank, std::uint32_t peer) const {
  const std::uint32_t shift = rank % localRanks_ / step_ * step_;
  const std::uint32_t node = (peer / localRanks_ + nodes_ - rank / localRanks_) % nodes_;
  return node * localRanks_ + (peer % localRanks_ + localRanks_ - shift) % localRanks_;
}

std::uint32_t Symmetry::seenBy(std::uint32_t rank, std::uint32_t peer) const {
  const std::uint32_t shift = rank % localRanks_ / step_ * step_;
  const std::uint32_t node = (peer / localRanks_ + rank / localRanks_) % nodes_;
  return node * localRanks_ + (peer % localRanks_ + shift) % localRanks_;
}

std::uint32_t Symmetry::moved(std::uint32_t ofClass, std::uint32_t shift) const {
  return shift % nodes_ * localRanks_ + (ofClass + shift / nodes_ * step_) % localRanks_;
}

Use Symmetry::folded(Use use) const {
  if (folded_.empty()) return use;
  const Use& one = folded_[use.resource % folded_.size()];
  return {one.resource, use.weight * one.weight};
}

}  // namespace weft::sim
