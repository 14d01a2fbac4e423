// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/paper/exchange.h"

#include <algorithm>
#include <vector>

namespace weft::simulator {
namespace {

// What the resources of a network have to carry.
class Loads {
 public:
  explicit Loads(const sim::Network& network) : network_(network), bytes_(network.resources(), 0) {}

  void add(std::uint32_t from, std::uint32_t to, double bytes) {
    sim::Route route;
    network_.findRoute(from, to, &route);
    for (const sim::Use& use : route.uses) bytes_[use.resource] += use.weight * bytes;
  }
  double ns() const {
    double most = 0;
    for (std::uint32_t r = 0; r < bytes_.size(); ++r)
      if (bytes_[r] > 0) most = std::max(most, bytes_[r] / network_.rateOf(r));
    return most;
  }

 private:
  const sim::Network& network_;
  std::vector<double> bytes_;
};

// Each member has a block for each other one.
void addFlat(const sim::Network& network, const sim::Groups& groups, double bytes, Loads* loads) {
  for (std::uint32_t rank = 0; rank < network.ranks(); ++rank)
    for (std::uint32_t m = 0; m < groups.size; ++m)
      if (const std::uint32_t peer = groups.rankOf(rank, m); peer != rank)
        loads->add(rank, peer, bytes / groups.size);
}

// Inside nodes each member has a part for each other one, as large as their number makes it; what is
// left crosses, between members of the same place. Both at once, as in a pipeline.
void addTwoLevel(const sim::Network& network, const sim::Groups& groups, double bytes,
                 Loads* loads) {
  for (std::uint32_t rank = 0; rank < network.ranks(); ++rank) {
    std::vector<std::uint32_t> near, far;
    for (std::uint32_t m = 0; m < groups.size; ++m) {
      const std::uint32_t peer = groups.rankOf(rank, m);
      if (network.nodeOf(peer) == network.nodeOf(rank))
        near.push_back(peer);
      else if (network.localRankOf(peer) == network.localRankOf(rank))
        far.push_back(peer);
    }
    const auto inNode = static_cast<double>(near.size());
    for (const std::uint32_t peer : near)
      if (peer != rank) loads->add(rank, peer, bytes / inNode);
    const auto nodes = static_cast<double>(far.size() + 1);
    for (const std::uint32_t peer : far) loads->add(rank, peer, bytes / inNode / nodes);
  }
}

}  // namespace

double exchangeNs(const sim::Network& network, const sim::Groups& groups, double elements,
                  const PaperStack& stack) {
  double ns = 0;
  for (const PaperExchange& exchange : stack.exchanges) {
    const bool both = exchange.collective == schedule::Collective::AllReduce;
    const double bytes =
        elements * static_cast<double>(reduce::sizeOf(exchange.type)) * (both ? 2 : 1);
    Loads loads(network);
    if (exchange.ways == PaperExchange::Ways::Flat)
      addFlat(network, groups, bytes, &loads);
    else
      addTwoLevel(network, groups, bytes, &loads);
    ns += loads.ns();
  }
  return ns;
}

}  // namespace weft::simulator
