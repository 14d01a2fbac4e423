// SPDX-License-Identifier: Apache-2.0
#include "forest/forest.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "../broken_links.h"
#include "../slow_build.h"
#include "forest/max_flow.h"
#include "forest/rate.h"

namespace weft::forest {
namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;

std::vector<std::uint32_t> allOf(const Graph& graph) {
  std::vector<std::uint32_t> all(graph.ranks);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

Graph ring(std::uint32_t ranks, double rate) {
  Graph graph;
  graph.ranks = ranks;
  graph.nodeOf.assign(ranks, 0);
  for (std::uint32_t a = 0; a < ranks; ++a)
    for (const std::uint32_t b : {(a + 1) % ranks, (a + ranks - 1) % ranks})
      graph.links.push_back({a, b, rate, 1e3});
  return graph;
}

void join(Graph* graph, std::uint32_t a, std::uint32_t b, double rate) {
  graph->links.push_back({a, b, rate, 0});
  graph->links.push_back({b, a, rate, 0});
}

TEST(MaxFlow, IsTheTextbooks) {
  MaxFlow<double> flow(6);  // Cormen et al., figure 26.1: 23
  flow.addEdge(0, 1, 16);
  flow.addEdge(0, 2, 13);
  flow.addEdge(1, 3, 12);
  flow.addEdge(2, 1, 4);
  flow.addEdge(3, 2, 9);
  flow.addEdge(2, 4, 14);
  flow.addEdge(4, 3, 7);
  flow.addEdge(3, 5, 20);
  flow.addEdge(4, 5, 4);
  EXPECT_DOUBLE_EQ(flow.run(0, 5), 23);
  EXPECT_DOUBLE_EQ(flow.run(0, 5), 23);
  EXPECT_DOUBLE_EQ(flow.run(0, 5, 7), 7);
}

TEST(Rate, OfARing) {
  const Graph graph = ring(5, 10);
  EXPECT_DOUBLE_EQ(bestRate(graph, allOf(graph), 5), 5);  // four blocks over two links of 10
  EXPECT_DOUBLE_EQ(bestRate(graph, {2}, 5), 20);
}

// Two ranks on one port have no link: what both need comes in twice, and what they exchange as well.
TEST(Rate, APortCopiesNothing) {
  Graph graph;
  graph.ranks = 4;
  graph.nodeOf = {0, 0, 1, 1};
  graph.links = {{2, 3, 100, 0}, {3, 2, 100, 0}};
  graph.ports = {{{0, 1}, 12, 0}, {{2, 3}, 12, 0}};
  EXPECT_DOUBLE_EQ(bestRate(graph, allOf(graph), 4), 2);
}

// A thin link joins a port's ranks, which neither single ranks nor what links join tell: 0 and 1 need two
// blocks, 2 needs three, over the port and what the link carries both ways.
Graph withThinLink() {
  Graph graph;
  graph.ranks = 4;
  graph.nodeOf = {0, 0, 0, 1};
  graph.links = {{0, 1, 100, 0}, {1, 0, 100, 0}, {1, 2, 1, 0}, {2, 1, 1, 0}};
  graph.ports = {{{0, 1, 2}, 12, 0}, {{3}, 24, 0}};
  return graph;
}

TEST(Rate, OfSetsThatShareAPort) {
  const Graph graph = withThinLink();
  EXPECT_DOUBLE_EQ(bestRate(graph, allOf(graph), 4), 14.0 / 5);
}

// Of a chain of three and a rank that only a thin link joins to it, the chain needs three blocks and the other
// five: no set of equals says so.
TEST(Rate, OfSetsThatThinLinksJoin) {
  Graph graph;
  graph.ranks = 6;
  graph.nodeOf = {0, 0, 1, 1, 1, 1};
  for (const auto& [a, b] : {Pair{0, 1}, {2, 3}, {2, 5}}) join(&graph, a, b, 25);
  join(&graph, 4, 5, 3.125);
  graph.ports = {{{0, 1}, 12.5, 0}, {{2, 3, 4, 5}, 12.5, 0}};
  EXPECT_DOUBLE_EQ(bestRate(graph, allOf(graph), 6), 18.75 / 8);
}

// A rank without cables and a chain of three share a port.
TEST(Rate, OfARankBesideTheOthersOfItsPort) {
  Graph graph;
  graph.ranks = 6;
  graph.nodeOf.assign(6, 0);
  for (const auto& [a, b] : {Pair{1, 2}, {2, 3}}) join(&graph, a, b, 6.25);
  graph.ports = {{{0, 1, 2, 3}, 12.5, 0}, {{4, 5}, 25, 0}};
  EXPECT_DOUBLE_EQ(bestRate(graph, allOf(graph), 6), 12.5 / 8);
}

TEST(Rate, IsNoneWhereARankIsCutOff) {
  Graph graph = ring(4, 10);
  std::erase_if(graph.links, [](const Graph::Link& link) { return link.to == 2; });
  EXPECT_EQ(bestRate(graph, allOf(graph), 4), 0);
  Forest forest;
  const Status status = grow(graph, allOf(graph), {}, &forest);
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  EXPECT_NE(status.text().find("no way over links"), std::string::npos) << status.text();
}

TEST(Grow, RefusesMemoryAlone) {
  Forest forest;
  const Graph graph = ring(4, kUnlimitedRate);
  const Status status = grow(graph, allOf(graph), {}, &forest);
  EXPECT_NE(status.text().find("no link limits"), std::string::npos) << status.text();
}

// Each tree reaches all ranks once, each after the one before it, and all parts are in one.
void expectTrees(const Forest& forest) {
  std::map<std::uint32_t, std::uint32_t> next;
  for (const Tree& tree : forest.trees) {
    std::vector<bool> reached(forest.ranks, false);
    reached[tree.root] = true;
    EXPECT_EQ(tree.edges.size(), forest.ranks - 1);
    for (const Tree::Edge& edge : tree.edges) {
      EXPECT_TRUE(reached[edge.from]);
      EXPECT_FALSE(reached[edge.to]);
      reached[edge.to] = true;
    }
    EXPECT_EQ(tree.first, next[tree.root]);
    next[tree.root] += tree.parts;
  }
  for (const std::uint32_t root : forest.roots) EXPECT_EQ(next[root], forest.parts);
}

// Nothing carries more than it can at the forest's rate, and pairs without a link use ports.
void expectCarried(const Graph& graph, const Forest& forest) {
  std::map<Pair, double> load;
  const double part = forest.rate / forest.parts;  // bytes a nanosecond
  for (const Tree& tree : forest.trees)
    for (const Tree::Edge& edge : tree.edges) load[{edge.from, edge.to}] += part * tree.parts;
  for (const Graph::Link& link : graph.links) {
    EXPECT_LE((load[{link.from, link.to}]), link.rate * (1 + 1e-9));
    load.erase({link.from, link.to});
  }
  for (const Graph::Port& port : graph.ports) {
    double out = 0, in = 0;
    for (const auto& [pair, carried] : load) {
      out += std::ranges::count(port.ranks, pair.first) > 0 ? carried : 0;
      in += std::ranges::count(port.ranks, pair.second) > 0 ? carried : 0;
    }
    EXPECT_LE(std::max(out, in), port.rate * (1 + 1e-9));
  }
}

// Whatever goes on from a rank has come there before, and nothing is quicker than its cable.
void expectTimely(const Graph& graph, const Forest& forest) {
  const Timetable& table = forest.timetable;
  ASSERT_EQ(table.passages.size(), forest.trees.size());
  const double part = forest.rate / forest.parts * table.roundNs;
  for (std::size_t t = 0; t < forest.trees.size(); ++t) {
    const Tree& tree = forest.trees[t];
    ASSERT_EQ(table.passages[t].size(), tree.edges.size());
    std::vector<double> came(forest.ranks, 0);
    for (std::size_t e = 0; e < tree.edges.size(); ++e) {
      const Passage& passage = table.passages[t][e];
      EXPECT_GE(passage.sent, came[tree.edges[e].from]);
      EXPECT_LE(passage.came, table.longestNs);
      came[tree.edges[e].to] = passage.came;
      for (const Graph::Link& link : graph.links) {
        if (link.from != tree.edges[e].from || link.to != tree.edges[e].to) continue;
        const double least = part * tree.parts / link.rate * (1 - 1e-6) + link.latencyNs;
        EXPECT_GE(passage.came - passage.sent, least);
      }
    }
  }
}

TEST(Grow, TreesOfAnyGraphFit) {
  std::mt19937 random(5);
  for (std::uint32_t run = 0; run < (test::kSlowBuild ? 10 : 60); ++run) {
    Graph graph = test::brokenGraph(2 + run % 15);
    for (Graph::Link& link : graph.links) link.rate *= 1 + static_cast<double>(random() % 4);
    for (Graph::Port& port : graph.ports) port.rate *= 1 + static_cast<double>(random() % 3);
    for (const bool all : {true, false}) {
      const std::vector<std::uint32_t> roots =
          all ? allOf(graph) : std::vector{static_cast<std::uint32_t>(random() % graph.ranks)};
      Forest forest;
      const Status grown = grow(graph, roots, {}, &forest);
      ASSERT_TRUE(grown.ok()) << grown.text();
      expectTrees(forest);
      expectCarried(graph, forest);
      EXPECT_LE(forest.rate, forest.bestRate * (1 + 1e-9));
      expectTimely(graph, forest);
    }
  }
}

void expectOptimal(const Graph& graph) {
  Forest forest;
  ASSERT_TRUE(grow(graph, allOf(graph), {}, &forest).ok());
  EXPECT_LE(forest.lost(), 0.005);
  expectTrees(forest);
  expectCarried(graph, forest);
}

// Shares of a port go to who lacks them, as far as it takes.
TEST(Grow, IsOptimalWhereRanksOfAPortAreUnlike) { expectOptimal(withThinLink()); }

// What the switch brings last may be left to ranks that a cable joins, which never use it: then others
// change partners with them.
TEST(Grow, IsOptimalWhereCablesKeepRanksFromTheSwitch) {
  Graph graph;
  graph.ranks = 6;
  graph.nodeOf = {0, 0, 0, 1, 1, 1};
  graph.links = {{3, 4, 6.25, 0}, {4, 3, 6.25, 0}, {4, 5, 6.25, 0}, {5, 4, 6.25, 0}};
  for (std::uint32_t rank = 0; rank < graph.ranks; ++rank)
    graph.ports.push_back({{rank}, rank == 2 ? 25.0 : 50.0, 0});
  expectOptimal(graph);
}

// Two nodes, with a port of `rate` for each rank.
Graph twoNodes(std::uint32_t first, std::uint32_t second, double rate) {
  Graph graph;
  graph.ranks = first + second;
  for (std::uint32_t rank = 0; rank < graph.ranks; ++rank) {
    graph.nodeOf.push_back(rank < first ? 0 : 1);
    graph.ports.push_back({{rank}, rate, 0});
  }
  return graph;
}

// The ends of a chain need all of a port, half each: neither takes the last part from the other, but from
// the middle.
TEST(Grow, IsOptimalWhereTwoRanksNeedAllOfAPort) {
  Graph graph;
  graph.ranks = 4;
  graph.nodeOf = {0, 0, 0, 1};
  join(&graph, 0, 2, 12.5);
  join(&graph, 1, 2, 12.5);
  graph.ports = {{{0, 1, 2}, 25, 0}, {{3}, 25, 0}};
  expectOptimal(graph);
}

// The same in a chain over two ports: that one of them has something to give does not say that it should.
TEST(Grow, IsOptimalWhereAnotherPortHadBetterGive) {
  Graph graph;
  graph.ranks = 6;
  graph.nodeOf = {0, 0, 0, 0, 0, 1};
  for (const auto& [a, b] : {Pair{0, 4}, {2, 3}}) join(&graph, a, b, 12.5);
  for (const auto& [a, b] : {Pair{1, 2}, {3, 4}}) join(&graph, a, b, 6.25);
  graph.ports = {{{0, 1, 2}, 6.25, 0}, {{3, 4}, 6.25, 0}, {{5}, 25, 0}};
  expectOptimal(graph);
}

// The last part for one of three ranks without cables comes from a node of three with some, after more than
// one change of partners.
TEST(Grow, IsOptimalWhereSeveralPairsChangePartners) {
  Graph graph = twoNodes(3, 3, 25);
  for (const auto& [a, b] : {Pair{3, 4}, {3, 5}, {4, 5}}) join(&graph, a, b, 6.25);
  expectOptimal(graph);
}

// All pairs have the right number of parts, but two of them must change partners with each other.
TEST(Grow, IsOptimalWherePairsChangePartnersAmongThemselves) {
  Graph graph;
  graph.ranks = 4;
  graph.nodeOf = {0, 0, 1, 1};
  join(&graph, 0, 1, 1.5625);
  graph.ports = {{{0, 1}, 25, 0}, {{2, 3}, 18.75, 0}};
  expectOptimal(graph);
}

// Cables join all ranks of the larger node, so two parts out of it are left over, and two into it: nobody
// may need them.
TEST(Grow, IsOptimalWhereSomeOfTheSwitchIsLeftOver) {
  Graph graph = twoNodes(3, 2, 12.5);
  join(&graph, 0, 1, 3.125);
  join(&graph, 0, 2, 25);
  join(&graph, 1, 2, 3.125);
  expectOptimal(graph);
}

// Where all is alike, rounding costs nothing.
TEST(Grow, IsOptimalOnRings) {
  for (const std::uint32_t ranks : {3u, 4u, 7u, 8u, 16u}) {
    const Graph graph = ring(ranks, 12.5);
    Forest forest;
    ASSERT_TRUE(grow(graph, allOf(graph), {}, &forest).ok());
    EXPECT_NEAR(forest.lost(), 0, 1e-6) << ranks;
    expectTrees(forest);
    expectCarried(graph, forest);
  }
}

// A port gives whoever uses it equal parts of its rate: whoever had to bring more than others would be late.
TEST(Grow, UsesFullPortsAlike) {
  Graph graph;
  graph.ranks = 6;
  graph.nodeOf = {0, 0, 1, 1, 2, 2};
  constexpr double kRates[] = {6.25, 12.5, 6.25, 9.375, 6.25, 12.5};
  for (std::uint32_t rank = 0; rank < graph.ranks; ++rank)
    graph.ports.push_back({{rank}, kRates[rank], 20e3});
  Forest forest;
  ASSERT_TRUE(grow(graph, allOf(graph), {}, &forest).ok());
  expectTrees(forest);
  expectCarried(graph, forest);
  std::map<Pair, std::uint32_t> parts;
  for (const Tree& tree : forest.trees)
    for (const Tree::Edge& edge : tree.edges) parts[{edge.from, edge.to}] += tree.parts;
  for (const auto& [pair, carried] : parts) {
    const bool isFull = kRates[pair.second] == 6.25;  // all ranks get as much
    EXPECT_LE(carried, isFull ? 2 * forest.parts : ~0u) << pair.first << " to " << pair.second;
  }
}

}  // namespace
}  // namespace weft::forest
