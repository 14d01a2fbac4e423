// SPDX-License-Identifier: Apache-2.0
#include "sim/bound.h"

#include <algorithm>
#include <vector>

#include "sim/max_flow.h"

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

// The job as a graph: its ranks, the two sides of each rail, and a source of which each rank has so
// much as its block.
class Graph {
 public:
  explicit Graph(const Network& network)
      : network_(network),
        ranks_(network.ranks()),
        rails_(static_cast<std::uint32_t>(network.fabric().rails.size())),
        flow_(ranks_ + 2 * network.nodes() * rails_ + 2) {
    for (std::uint32_t a = 0; a < ranks_; ++a) {
      blocks_.push_back(flow_.addEdge(source(), a, 0));
      for (std::uint32_t b = 0; b < ranks_; ++b) join(a, b);
    }
    for (std::uint32_t node = 0; node < network.nodes(); ++node)
      for (std::uint32_t r = 0; r < rails_; ++r) addRail(node, r);
  }

  // Can all ranks get all others' blocks if each sends so many bytes a nanosecond of its own?
  bool carries(double rate) {
    for (const std::uint32_t edge : blocks_) flow_.setCapacity(edge, rate);
    const double all = rate * ranks_;
    const std::uint32_t most = network_.isSymmetric() ? network_.ranksOfNode(0) : ranks_;
    for (std::uint32_t r = 0; r < most; ++r)
      if (flow_.run(source(), r) < all * (1 - 1e-9)) return false;
    return true;
  }

 private:
  std::uint32_t source() const { return ranks_ + 2 * network_.nodes() * rails_; }
  std::uint32_t core() const { return source() + 1; }  // of the switch

  void join(std::uint32_t a, std::uint32_t b) {
    if (a == b || network_.nodeOf(a) != network_.nodeOf(b)) return;
    if (network_.joinsByMemory(a, b))
      flow_.addEdge(a, b, MaxFlow::kUnlimited);
    else if (const double rate = network_.rateOfMesh(a, b); rate > 0)
      flow_.addEdge(a, b, rate);
  }

  void addRail(std::uint32_t node, std::uint32_t r) {
    const std::uint32_t out = ranks_ + 2 * (node * rails_ + r), in = out + 1;
    const Network::Ports ports = network_.portsOfRail(node, r);
    flow_.addEdge(out, core(), ports.out);
    flow_.addEdge(core(), in, ports.in);
    for (const std::uint32_t local : network_.fabric().rails[r].ranks) {
      if (local >= network_.ranksOfNode(node)) continue;
      flow_.addEdge(network_.rankOf(node, local), out, MaxFlow::kUnlimited);
      flow_.addEdge(in, network_.rankOf(node, local), MaxFlow::kUnlimited);
    }
  }

  const Network& network_;
  const std::uint32_t ranks_, rails_;
  MaxFlow flow_;
  std::vector<std::uint32_t> blocks_;
};

constexpr std::uint32_t kMostRanks = 64, kMostSymmetric = 256;

double flowNs(const Network& network, double bytes) {
  const std::uint32_t ranks = network.ranks();
  if (ranks < 2 || ranks > (network.isSymmetric() ? kMostSymmetric : kMostRanks)) return 0;
  Graph graph(network);
  double least = 0, most = MaxFlow::kUnlimited;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    if (network.joinsByMemory(r, network.rankOf(network.nodeOf(r), 0))) continue;
    most = std::min(most, network.portsOfRank(r).in / (ranks - 1));
  }
  for (std::uint32_t node = 0; network.nodes() > 1 && node < network.nodes(); ++node)
    most = std::min(most, network.portsOfNode(node).in / (ranks - network.ranksOfNode(node)));
  if (most >= MaxFlow::kUnlimited) return 0;
  if (graph.carries(most)) return bytes / ranks / most;
  for (int i = 0; i < 40; ++i) {
    const double middle = (least + most) / 2;
    (graph.carries(middle) ? least : most) = middle;
  }
  return bytes / ranks / most;
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
