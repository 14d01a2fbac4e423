// SPDX-License-Identifier: Apache-2.0
#include "forest/forest.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "forest/balance.h"
#include "forest/even.h"
#include "forest/rate.h"
#include "forest/split.h"
#include "forest/units.h"

namespace weft::forest {
namespace {

constexpr double kGood = 0.005;  // that rounding may cost; fewer parts are worth it
constexpr double kLeastRounds = 4;
constexpr double kRound = 0.25;  // of the longest way's time; the measured best of 1/4, 1/2, 1

// How many parts links carry in the time that each root needs, longer than the least by `slack`.
double unitsOf(const Demand& demand, double bestRate, double slack) {
  return demand.parts / bestRate * (1 + slack);
}

bool fitsIn(const Graph& graph, const Demand& demand, double units) {
  return UnitGraph(graph, demand, units).settleShares();
}

// The least slack with which links carry all whole parts; at most `most`.
std::optional<double> slackOf(const Graph& graph, const Demand& demand, double rate, double most) {
  constexpr int kSteps = 5;
  const auto fits = [&](double slack) {
    return fitsIn(graph, demand, unitsOf(demand, rate, slack));
  };
  if (fits(0)) return 0;
  double no = 0, step = 2 * kGood;
  for (; step < most && !fits(step); step *= 2) no = step;
  if (step >= most && !fits(most)) return {};
  most = std::min(most, step);
  for (int i = 0; i < kSteps; ++i) {
    const double middle = (no + most) / 2;
    (fits(middle) ? most : no) = middle;
  }
  return most;
}

struct Choice {
  Demand demand;
  double slack = 0;
};

std::uint32_t mostParts(std::uint32_t roots, const Limits& limits) {
  return std::clamp(limits.allParts / roots, 1u, limits.parts);
}

Choice chooseParts(const Graph& graph, const std::vector<std::uint32_t>& roots,
                   const Limits& limits, double rate) {
  const auto all = static_cast<std::uint32_t>(roots.size());
  const std::uint32_t most = mostParts(all, limits);
  Choice best{{roots, 1}, 1e3};
  for (std::uint32_t parts = limits.leastParts; parts <= most && best.slack > kGood; ++parts) {
    const Demand demand{roots, static_cast<Units>(parts)};
    const std::optional<double> slack = slackOf(graph, demand, rate, best.slack);
    if (slack && *slack < best.slack) best = {demand, *slack};
  }
  return best;
}

// The longest way from a root, in time.
double longestNs(const Graph& graph, const std::vector<Tree>& trees) {
  std::vector<double> port(graph.ranks, 0), at(graph.ranks);
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> links;
  for (const Graph::Port& one : graph.ports)
    for (const std::uint32_t rank : one.ranks) port[rank] = one.latencyNs;
  for (const Graph::Link& link : graph.links) links[{link.from, link.to}] = link.latencyNs;
  double longest = 0;
  for (const Tree& tree : trees) {
    at[tree.root] = 0;
    for (const Tree::Edge& edge : tree.edges) {
      const auto link = links.find({edge.from, edge.to});
      at[edge.to] = at[edge.from] +
                    (link != links.end() ? link->second : std::max(port[edge.from], port[edge.to]));
      longest = std::max(longest, at[edge.to]);
    }
  }
  return longest;
}

// Time for what each rank sends in a round.
double sendingNs(const Graph& graph, const std::vector<Tree>& trees, const Limits& limits) {
  std::vector<double> messages(graph.ranks, 0);
  for (const Tree& tree : trees)
    for (const Tree::Edge& edge : tree.edges) ++messages[edge.from];
  return limits.messageNs * *std::ranges::max_element(messages);
}

// Rounds are short, as trees of many hops need one for each to fill; where messages forbid that, there are
// fewer in a segment, which lasts twice as long as the longest way.
void pace(const Graph& graph, const Limits& limits, double units, Forest* forest) {
  const double longest = longestNs(graph, forest->trees);
  const double roundNs = std::max(kRound * longest, sendingNs(graph, forest->trees, limits));
  const double needed = std::max<double>(kLeastRounds, std::ceil(2 * longest / roundNs));
  forest->rounds = static_cast<std::uint32_t>(std::min<double>(limits.rounds, needed));
  forest->segmentNs = forest->rounds * roundNs;
  forest->timetable = timetableOf(graph, forest->trees, roundNs / units, roundNs);
}

}  // namespace

Status grow(const Graph& graph, const std::vector<std::uint32_t>& roots, const Limits& limits,
            Forest* out) {
  const double rate = bestRate(graph, roots, graph.ranks);
  if (rate <= 0)
    return Status::error(Code::InvalidArgument,
                         "there is no way over links from each rank to all others; fix: add a line "
                         "that joins them");
  if (isUnlimited(rate))
    return Status::error(Code::InvalidArgument,
                         "no link limits these ranks, so there are no trees to plan; fix: choose "
                         "another algorithm");
  Choice choice = chooseParts(graph, roots, limits, rate);
  // Pairs with a cable do not use the switch, which bestRate() does not know: then links need to carry
  // more.
  for (;; choice.slack += kGood + choice.slack / 4) {
    const double units = unitsOf(choice.demand, rate, choice.slack);
    UnitGraph graphOfUnits(graph, choice.demand, units);
    if (!graphOfUnits.settleShares() || !splitSwitch(graph, &graphOfUnits)) continue;
    balance(graph, units, &graphOfUnits);
    *out = {graph.ranks,
            roots,
            static_cast<std::uint32_t>(choice.demand.parts),
            packTrees(even(graph, units, graphOfUnits), choice.demand),
            limits.rounds,
            {},
            choice.demand.parts / units,
            rate,
            0};
    pace(graph, limits, units, out);
    return {};
  }
}

Status Links::make(Graph graph, const Limits& limits, Links* out) {
  std::vector<std::uint32_t> all(graph.ranks);
  std::iota(all.begin(), all.end(), 0u);
  *out = {std::move(graph), limits, {}};
  return grow(out->graph, all, limits, &out->fromAll);
}

Status Links::makeSome(const Graph& graph, const Limits& limits,
                       std::vector<std::shared_ptr<const Links>>* out) {
  constexpr std::uint32_t kFewRanks = 32;
  constexpr std::size_t kSome = 8;
  const std::uint32_t most = mostParts(graph.ranks, limits);
  out->clear();
  for (Limits next = limits; out->size() < kSome && next.leastParts <= most;) {
    auto links = std::make_shared<Links>();
    WEFT_TRY(make(graph, next, links.get()));
    const bool isGood = links->fromAll.lost() <= kGood;
    next.leastParts = links->fromAll.parts + 1;
    if (out->empty() || isGood) out->push_back(std::move(links));
    if (!isGood || graph.ranks > kFewRanks) break;
  }
  return {};
}

Forest stars(std::uint32_t ranks, const std::vector<std::uint32_t>& roots) {
  Forest forest{ranks, roots, 1, {}, 1, {}, 1, 1, 0};
  for (const std::uint32_t root : roots) {
    Tree tree{root, 0, 1, {}};
    std::vector<Passage>& passages = forest.timetable.passages.emplace_back();
    for (std::uint32_t k = 1; k < ranks; ++k) {
      tree.edges.push_back({root, (root + k) % ranks});
      passages.push_back({k - 1.0, 1.0 * k, static_cast<std::uint32_t>(forest.trees.size())});
    }
    forest.trees.push_back(std::move(tree));
  }
  return forest;
}

}  // namespace weft::forest
