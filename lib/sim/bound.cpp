// SPDX-License-Identifier: Apache-2.0
#include "sim/bound.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "forest/rate.h"
#include "sim/wiring.h"

namespace weft::sim {
namespace {

using schedule::Collective;

// A part of the job's ranks that only its ports join to the rest.
struct Part {
  double ranks = 0;
  bool hasRoot = false;
  Network::Ports ports;
};

std::vector<Part> rankParts(const Network& network, std::uint32_t root) {
  std::vector<Part> parts;
  for (std::uint32_t r = 0; r < network.ranks(); ++r)
    parts.push_back({1, r == root, network.portsOfRank(r)});
  return parts;
}

std::vector<Part> nodeParts(const Network& network, std::uint32_t root) {
  std::vector<Part> parts;
  for (std::uint32_t node = 0; node < network.nodes(); ++node)
    parts.push_back({static_cast<double>(network.ranksOfNode(node)), network.nodeOf(root) == node,
                     network.portsOfNode(node)});
  return parts;
}

struct Bytes {
  double out = 0, in = 0;
};

// What must leave a part, and come in. Of a sum, either all addends of a block leave it as one, or
// those of the others come in.
Bytes neededBy(const Part& part, Collective collective, double ranks, double bytes) {
  const double own = bytes * part.ranks / ranks, rest = bytes - own;
  const bool root = part.hasRoot;
  switch (collective) {
    case Collective::AllReduce:
      return {bytes, bytes};
    case Collective::AllGather:
      return {own, rest};
    case Collective::ReduceScatter:
      return {rest, own};
    case Collective::Broadcast:
      return root ? Bytes{bytes, 0} : Bytes{0, bytes};
    case Collective::Reduce:
      return root ? Bytes{0, bytes} : Bytes{bytes, 0};
    case Collective::Gather:
      return root ? Bytes{0, rest} : Bytes{own, 0};
    case Collective::Scatter:
      return root ? Bytes{rest, 0} : Bytes{0, own};
    case Collective::AllToAll:
      return {part.ranks * rest, part.ranks * rest};
    default:
      return {};
  }
}

// Of all parts together an all-reduce sends twice what all but one of them have.
Bytes neededByAll(const std::vector<Part>& parts, Collective collective, double bytes) {
  if (collective != Collective::AllReduce) return {};
  const double both = 2 * bytes * static_cast<double>(parts.size() - 1);
  return {both, both};
}

double leastNs(const Bytes& needed, const Network::Ports& ports) {
  double ns = 0;
  if (ports.out > 0) ns = std::max(ns, needed.out / ports.out);
  if (ports.in > 0) ns = std::max(ns, needed.in / ports.in);
  return ns;
}

double cutNs(const std::vector<Part>& parts, Collective collective, double ranks, double bytes) {
  if (parts.size() < 2) return 0;
  Network::Ports all;
  double ns = 0;
  for (const Part& part : parts) {
    ns = std::max(ns, leastNs(neededBy(part, collective, ranks, bytes), part.ports));
    all.out += part.ports.out;
    all.in += part.ports.in;
  }
  return std::max(ns, leastNs(neededByAll(parts, collective, bytes), all));
}

constexpr std::uint32_t kMostRanks = 128, kMostSymmetric = 256;

double flowNs(const Network& network, double bytes) {
  const std::uint32_t ranks = network.ranks();
  if (ranks < 2 || ranks > (network.isSymmetric() ? kMostSymmetric : kMostRanks)) return 0;
  std::vector<std::uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0u);
  const double rate = forest::bestRate(graphOf(network), all,
                                       network.isSymmetric() ? network.ranksOfNode(0) : ranks);
  return rate > 0 && !forest::isUnlimited(rate) ? bytes / ranks / rate : 0;
}

}  // namespace

Bound boundOf(const Network& network, Collective collective, std::uint32_t root, double bytes) {
  Bound bound;
  const double ranks = network.ranks();
  // Ports of ranks that share memory are no limit.
  const bool isLinked = !network.fabric().memory.has_value();
  if (isLinked) bound.cutNs = cutNs(rankParts(network, root), collective, ranks, bytes);
  bound.cutNs = std::max(bound.cutNs, cutNs(nodeParts(network, root), collective, ranks, bytes));
  if (collective == Collective::AllGather || collective == Collective::ReduceScatter)
    bound.flowNs = flowNs(network, bytes);
  return bound;
}

}  // namespace weft::sim
