// SPDX-License-Identifier: Apache-2.0
#include "forest/rate.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "forest/max_flow.h"

namespace weft::forest {
namespace {

// The graph with the two sides of each port, the switch, and a source of all roots.
class RateFlow {
 public:
  RateFlow(const Graph& graph, const std::vector<std::uint32_t>& roots)
      : roots_(roots),
        source_(graph.ranks + 2 * static_cast<std::uint32_t>(graph.ports.size())),
        flow_(source_ + 2) {
    for (const Graph::Link& link : graph.links) flow_.addEdge(link.from, link.to, link.rate);
    for (std::uint32_t p = 0; p < graph.ports.size(); ++p) {
      const std::uint32_t out = graph.ranks + 2 * p, in = out + 1, core = source_ + 1;
      flow_.addEdge(out, core, graph.ports[p].rate);
      flow_.addEdge(core, in, graph.ports[p].rate);
      for (const std::uint32_t rank : graph.ports[p].ranks) {
        flow_.addEdge(rank, out, kUnlimitedRate);
        flow_.addEdge(in, rank, kUnlimitedRate);
      }
    }
    for (const std::uint32_t root : roots) starts_.push_back(flow_.addEdge(source_, root, 0));
  }

  // The largest rate, up to `rate`, at which `sink` gets all: by Newton's method, from cut to cut.
  double reduce(double rate, std::uint32_t sink) {
    const auto all = static_cast<double>(roots_.size());
    while (rate > 0) {
      for (const std::uint32_t edge : starts_) flow_.setCapacity(edge, rate);
      const double flow = flow_.run(source_, sink);
      if (flow >= rate * all * (1 - 1e-9)) break;
      const auto before = static_cast<double>(
          std::ranges::count_if(roots_, [&](std::uint32_t r) { return flow_.isBeforeCut(r); }));
      if (before == 0) break;  // all that the source sends: a rounding error
      rate = std::max(0.0, flow - rate * (all - before)) / before;
    }
    return rate;
  }

 private:
  const std::vector<std::uint32_t>& roots_;
  const std::uint32_t source_;
  MaxFlow<double> flow_;
  std::vector<std::uint32_t> starts_;
};

using Set = std::vector<std::uint32_t>;  // of ranks
using Family = std::vector<Set>;         // disjoint ones

// What comes into disjoint sets of ranks, and what they need of it.
class Families {
 public:
  Families(const Graph& graph, const std::vector<std::uint32_t>& roots)
      : graph_(graph), isRoot_(graph.ranks, false), portOf_(graph.ranks, kNone) {
    for (const std::uint32_t root : roots) isRoot_[root] = true;
    for (std::uint32_t p = 0; p < graph.ports.size(); ++p)
      for (const std::uint32_t rank : graph.ports[p].ranks) portOf_[rank] = p;
  }

  // A port's rate counts once, whichever of them use it.
  double rateOf(const Family& family) const {
    std::vector<std::uint32_t> setOf(graph_.ranks, kNone);
    std::vector<bool> counted(graph_.ports.size(), false);
    const auto roots = std::ranges::count(isRoot_, true);
    double in = 0, needed = 0;
    for (std::uint32_t i = 0; i < family.size(); ++i) {
      needed += static_cast<double>(roots);
      for (const std::uint32_t rank : family[i]) {
        setOf[rank] = i;
        if (isRoot_[rank]) --needed;
        if (portOf_[rank] == kNone || counted[portOf_[rank]]) continue;
        counted[portOf_[rank]] = true;
        in += graph_.ports[portOf_[rank]].rate;
      }
    }
    for (const Graph::Link& link : graph_.links)
      if (setOf[link.to] != kNone && setOf[link.from] != setOf[link.to]) in += link.rate;
    return needed > 0 ? in / needed : kUnlimitedRate;
  }

  double least() const {
    double rate = kUnlimitedRate;
    for (Family& family : starts()) rate = std::min(rate, descend(std::move(family)));
    return rate;
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  static constexpr std::size_t kMostSets = 32;  // to be joined: it takes their number cubed

  // Each rank by itself; and of the ranks of each port and each node: one by one, one beside the others,
  // and what cables of some rate at least join.
  std::vector<Family> starts() const {
    std::vector<Family> families;
    for (std::uint32_t r = 0; r < graph_.ranks; ++r) families.push_back({{r}});
    std::set<double> rates;
    for (const Graph::Link& link : graph_.links) rates.insert(link.rate);
    for (const Set& group : groups()) {
      families.push_back(singles(group));
      for (const std::uint32_t rank : group) families.push_back(besideOthers(group, rank));
      for (const double least : rates) families.push_back(joinedByLinks(group, least));
    }
    return families;
  }
  std::vector<Set> groups() const {
    std::vector<Set> groups;
    for (std::uint32_t r = 0; r < graph_.ranks; ++r) {
      groups.resize(std::max<std::size_t>(groups.size(), graph_.nodeOf[r] + 1));
      groups[graph_.nodeOf[r]].push_back(r);
    }
    for (const Graph::Port& port : graph_.ports) groups.push_back(port.ranks);
    return groups;
  }

  // What a family says, or one that comes from it by joining sets and leaving some out, as long as that
  // says less.
  double descend(Family family) const {
    double rate = kUnlimitedRate;
    while (rateOf(family) < rate * (1 - 1e-9)) {
      rate = rateOf(family);
      if (!sharesPort(family) || family.size() > kMostSets) break;
      const std::vector<Family> others = nextTo(family);
      family =
          *std::ranges::min_element(others, {}, [&](const Family& one) { return rateOf(one); });
    }
    return rate;
  }
  static std::vector<Family> nextTo(const Family& family) {
    std::vector<Family> all;
    for (std::size_t a = 0; a < family.size(); ++a) {
      Family others = family;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(a));
      for (std::size_t b = a; b < others.size(); ++b) {
        Family joined = others;
        joined[b].insert(joined[b].end(), family[a].begin(), family[a].end());
        all.push_back(std::move(joined));
      }
      all.push_back(std::move(others));
    }
    return all;
  }
  // Else single cuts say all.
  bool sharesPort(const Family& family) const {
    std::vector<std::uint32_t> setOf(graph_.ports.size(), kNone);
    for (std::uint32_t i = 0; i < family.size(); ++i)
      for (const std::uint32_t rank : family[i]) {
        if (portOf_[rank] == kNone) continue;
        std::uint32_t& set = setOf[portOf_[rank]];
        if (set != kNone && set != i) return true;
        set = i;
      }
    return false;
  }

  static Family singles(const Set& ranks) {
    Family family;
    for (const std::uint32_t rank : ranks) family.push_back({rank});
    return family;
  }

  static Family besideOthers(const Set& ranks, std::uint32_t rank) {
    Set others = ranks;
    std::erase(others, rank);
    return others.empty() ? Family{{rank}} : Family{{rank}, others};
  }

  Family joinedByLinks(const Set& ranks, double least) const {
    std::vector<std::uint32_t> first(graph_.ranks);
    std::iota(first.begin(), first.end(), 0u);
    for (bool changed = true; changed;) {
      changed = false;
      for (const Graph::Link& link : graph_.links) {
        if (link.rate < least || first[link.from] >= first[link.to]) continue;
        first[link.to] = first[link.from];
        changed = true;
      }
    }
    std::map<std::uint32_t, Set> sets;
    for (const std::uint32_t rank : ranks) sets[first[rank]].push_back(rank);
    Family family;
    for (auto& [name, set] : sets) family.push_back(std::move(set));
    return family;
  }

  const Graph& graph_;
  std::vector<bool> isRoot_;
  std::vector<std::uint32_t> portOf_;
};

}  // namespace

double bestRate(const Graph& graph, const std::vector<std::uint32_t>& roots, std::uint32_t sinks) {
  RateFlow flow(graph, roots);
  double rate = Families(graph, roots).least();
  for (std::uint32_t sink = 0; sink < std::min(sinks, graph.ranks); ++sink)
    rate = flow.reduce(rate, sink);
  return rate;
}

}  // namespace weft::forest
