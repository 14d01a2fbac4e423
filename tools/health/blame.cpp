// SPDX-License-Identifier: Apache-2.0
#include "tools/health/blame.h"

#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "perf/common/median.h"

namespace weft::health {
namespace {

constexpr std::size_t kMostSuspects = 8;

struct Edge {
  int from = 0, to = 0;
  double cost = 0;  // microseconds, or seconds for a gigabyte
};
using Edges = std::vector<Edge>;
using GroupOf = std::function<int(int rank)>;

double valueOf(Measure measure, double cost) {
  return measure == Measure::Latency ? cost : 1 / cost;
}

double medianCost(const Edges& edges) {
  std::vector<double> costs;
  for (const Edge& edge : edges) costs.push_back(edge.cost);
  return tools::median(std::move(costs));
}

// The link whose cost is nearest to it.
Edge nearest(const Edges& edges, double cost) {
  return *std::ranges::min_element(
      edges, {}, [&](const Edge& edge) { return std::max(edge.cost / cost, cost / edge.cost); });
}

// The worse direction's best link of a group to others.
struct Standing {
  std::optional<Edge> out, in;
  const Edge& worse() const { return !in || (out && out->cost > in->cost) ? *out : *in; }
};

std::map<int, Standing> standings(const Edges& edges, const GroupOf& groupOf) {
  std::map<int, Standing> groups;
  const auto take = [](std::optional<Edge>& best, const Edge& edge) {
    if (!best || edge.cost < best->cost) best = edge;
  };
  for (const Edge& edge : edges) {
    if (groupOf(edge.from) == groupOf(edge.to)) continue;
    take(groups[groupOf(edge.from)].out, edge);
    take(groups[groupOf(edge.to)].in, edge);
  }
  return groups;
}

class Trial {
 public:
  Trial(Measure measure, bool memory, const Tolerance& tolerance, Edges edges)
      : measure_(measure), memory_(memory), tolerance_(tolerance), edges_(std::move(edges)) {}

  void accuseGroups(Scope scope, const GroupOf& groupOf, std::vector<Suspect>* suspects) {
    while (accuseGroup(scope, groupOf, suspects)) continue;
  }

  void accuseLinks(std::vector<Suspect>* suspects) {
    while (edges_.size() > 2) {
      const auto worst = std::ranges::max_element(edges_, {}, &Edge::cost);
      const Edge edge = *worst;
      std::erase_if(edges_, [&](const Edge& other) { return isSame(edge, other); });
      if (!accuse(Scope::Link, edge.from, edge, medianCost(edges_), suspects)) return;
    }
  }

 private:
  // Latency is the same both ways, and one finding is enough.
  bool isSame(const Edge& one, const Edge& other) const {
    if (one.from == other.from && one.to == other.to) return true;
    return measure_ == Measure::Latency && one.from == other.to && one.to == other.from;
  }

  // The worst group, if it is bad; its links are set aside then.
  bool accuseGroup(Scope scope, const GroupOf& groupOf, std::vector<Suspect>* suspects) {
    auto groups = standings(edges_, groupOf);
    if (groups.size() < 3) return false;
    const auto worst = std::ranges::max_element(
        groups, {}, [](const auto& group) { return group.second.worse().cost; });
    const auto [culprit, standing] = *worst;
    groups.erase(worst);
    Edges bests;
    for (const auto& [group, other] : groups) bests.push_back(other.worse());

    const Edges all = edges_;
    std::erase_if(edges_, [&](const Edge& edge) {
      return groupOf(edge.from) == culprit || groupOf(edge.to) == culprit;
    });
    if (accuse(scope, culprit, standing.worse(), medianCost(bests), suspects)) return true;
    edges_ = all;
    return false;
  }

  bool accuse(Scope scope, int culprit, const Edge& edge, double usual,
              std::vector<Suspect>* suspects) {
    if (edges_.empty() || suspects->size() == kMostSuspects) return false;
    const Edge reference = nearest(edges_, usual);
    const Suspect suspect{scope,
                          measure_,
                          culprit,
                          edge.from,
                          edge.to,
                          reference.from,
                          reference.to,
                          memory_,
                          valueOf(measure_, edge.cost),
                          valueOf(measure_, usual)};
    if (!tolerance_.exceededBy(suspect)) return false;
    suspects->push_back(suspect);
    return true;
  }

  Measure measure_;
  bool memory_;
  Tolerance tolerance_;
  Edges edges_;
};

using Kind = std::tuple<bool, std::string>;  // between hosts or inside, and the way

std::map<Kind, Edges> edgesByKind(const Matrix& matrix, const std::vector<Member>& members,
                                  const Ways& ways, Measure measure) {
  std::map<Kind, Edges> kinds;
  const int ranks = matrix.ranks();
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      const Link& link = matrix.at(from, to);
      const bool latency = measure == Measure::Latency;
      if (from == to || (latency ? link.microseconds : link.gigabytes) <= 0) continue;
      const auto a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(to);
      const bool between = members[a].hostIndex != members[b].hostIndex;
      kinds[{between, ways[a * members.size() + b]}].push_back(
          {from, to, latency ? link.microseconds : 1 / link.gigabytes});
    }
  }
  return kinds;
}

}  // namespace

bool Tolerance::exceededBy(const Suspect& suspect, double leniency) const {
  if (suspect.value <= 0 || suspect.usual <= 0) return false;
  if (suspect.measure == Measure::Bandwidth)
    return suspect.ratio() >= leniency * (suspect.memory ? slowerMemory : slower);
  return suspect.ratio() >= leniency * later &&
         suspect.value - suspect.usual >= leniency * microseconds;
}

std::vector<Suspect> findSuspects(const Matrix& matrix, const std::vector<Member>& members,
                                  const Ways& ways, const Tolerance& tolerance) {
  const GroupOf host = [&](int rank) { return members[static_cast<std::size_t>(rank)].hostIndex; };
  const GroupOf self = [](int rank) { return rank; };
  std::vector<Suspect> suspects;
  for (const Measure measure : {Measure::Bandwidth, Measure::Latency}) {
    for (const auto& [kind, edges] : edgesByKind(matrix, members, ways, measure)) {
      const auto& [between, way] = kind;
      Trial trial(measure, way == "shm" || way == "local", tolerance, edges);
      if (between) trial.accuseGroups(Scope::Host, host, &suspects);
      trial.accuseGroups(Scope::Rank, self, &suspects);
      trial.accuseLinks(&suspects);
    }
  }
  return suspects;
}

}  // namespace weft::health
