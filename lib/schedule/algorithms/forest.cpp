// SPDX-License-Identifier: Apache-2.0
// Along the trees of a forest: blocks down from their roots, sums up to them. Ranks forward for others,
// and what they do is in the order in which parts come by.
#include <algorithm>
#include <memory>
#include <numeric>

#include "schedule/algorithms/generators.h"

namespace weft::schedule {
namespace {

using forest::Forest;
using forest::Tree;

// A tree at a rank, on the way down.
struct Stop {
  Span what;  // logical chunks
  uint32_t root = 0, parent = 0;
  std::vector<uint32_t> children;  // in the order of sending
  uint32_t landing = 0;            // on the way up: where it puts at its parent
  std::vector<uint32_t> landings;  // and where its children put here
};

// Of every rank, its stops in the order in which parts come.
struct Course {
  uint32_t ranks = 1, parts = 1;
  std::vector<std::vector<Stop>> stops;  // by rank
  uint32_t landings = 0;                 // Tmp slots on the way up, of any rank
};

// By tree and rank: those to which it sends a tree's parts on, in the order in which they come there.
std::vector<std::vector<uint32_t>> childrenOf(const Forest& forest) {
  std::vector<std::vector<uint32_t>> children(forest.trees.size() * forest.ranks);
  std::vector<uint32_t> parent(children.size());
  for (uint32_t t = 0; t < forest.trees.size(); ++t)
    for (const Tree::Edge& edge : forest.trees[t].edges)
      parent[t * forest.ranks + edge.to] = edge.from;
  for (const forest::Visit& visit : forest.order) {
    const uint32_t before = visit.tree * forest.ranks;
    if (visit.round == 0 && visit.rank != forest.trees[visit.tree].root)
      children[before + parent[before + visit.rank]].push_back(visit.rank);
  }
  return children;
}

// `vector`: of one root, whose parts are the chunks.
std::shared_ptr<const Course> courseOf(const Forest& forest) {
  auto course = std::make_shared<Course>();
  course->ranks = forest.ranks;
  course->parts = forest.parts * forest.rounds;
  course->stops.resize(forest.ranks);
  std::vector<uint32_t> parents(forest.rounds * forest.trees.size() * forest.ranks);
  std::vector<uint32_t> landings(parents.size());
  std::vector<uint32_t> next(forest.ranks, 0);  // landing
  const bool isRooted = forest.roots.size() == 1 && forest.ranks > 1;
  const std::vector<std::vector<uint32_t>> children = childrenOf(forest);
  for (const forest::Visit& visit : forest.order) {
    const Tree& tree = forest.trees[visit.tree];
    const uint32_t block = isRooted ? 0 : tree.root * course->parts, rank = visit.rank;
    const auto trees = static_cast<uint32_t>(forest.trees.size());
    const uint32_t before = (visit.round * trees + visit.tree) * forest.ranks;
    Stop stop{{block + visit.round * forest.parts + tree.first, tree.parts},
              tree.root,
              parents[before + rank],
              children[visit.tree * forest.ranks + rank],
              landings[before + rank],
              {}};
    for (const uint32_t child : stop.children) {
      parents[before + child] = rank;
      landings[before + child] = next[rank];
      stop.landings.push_back(next[rank]);
      next[rank] += tree.parts;
    }
    course->stops[rank].push_back(std::move(stop));
  }
  course->landings = *std::ranges::max_element(next);
  return course;
}

// What comes in and goes on, with the chunk's slot in Out, and of the root's own in In.
template <class Input>
Program down(const std::vector<Stop>& stops, uint32_t me, Input inputOf) {
  Program p;
  for (const Stop& stop : stops) {
    const Slot place = out(stop.what.first);
    const bool isRoot = stop.root == me;
    if (!isRoot) p.wait(stop.parent, place, stop.what);
    for (const uint32_t child : stop.children)
      p.put(child, isRoot ? inputOf(stop) : place, place, stop.what);
  }
  return p;
}

// The other way round, the last stop first: own addends first, then those of the children.
template <class Output>
Program up(const std::vector<Stop>& stops, uint32_t me, Output outputOf) {
  Program p;
  for (auto stop = stops.rbegin(); stop != stops.rend(); ++stop) {
    std::vector<Slot> addends{in(stop->what.first)};
    for (size_t i = stop->children.size(); i-- > 0;) {
      p.wait(stop->children[i], tmp(stop->landings[i]), stop->what);
      addends.push_back(tmp(stop->landings[i]));
    }
    if (stop->root == me) {
      p.reduce(outputOf(*stop), addends, stop->what);
      p.apply(ApplyId::Finish, outputOf(*stop), outputOf(*stop), stop->what);
      continue;
    }
    const Slot sum = addends.size() == 1 ? addends[0] : tmp(stop->landings.back());
    p.reduce(sum, addends, stop->what);
    p.put(stop->parent, sum, tmp(stop->landing), stop->what);
  }
  return p;
}

uint32_t hopsOf(const Forest& forest) {
  uint32_t most = 1;
  for (const Tree& tree : forest.trees) {
    std::vector<uint32_t> depth(forest.ranks, 0);
    for (const Tree::Edge& edge : tree.edges) {
      depth[edge.to] = depth[edge.from] + 1;
      most = std::max(most, depth[edge.to]);
    }
  }
  return most;
}

void describe(const Forest& forest, Schedule& s) {
  s.typical.resize(forest.ranks);
  std::iota(s.typical.begin(), s.typical.end(), 0u);
  s.hops = hopsOf(forest);
  s.segmentBytes = forest.segmentNs * forest.rate * static_cast<double>(forest.roots.size());
}

}  // namespace

Schedule forestAllGather(const Forest& forest) {
  Schedule s = emptySchedule(Collective::AllGather, "forest", forest.ranks, forest.ranks, 0,
                             forest.parts * forest.rounds);
  describe(forest, s);
  s.program = [course = courseOf(forest)](uint32_t me) {
    const uint32_t first = me * course->parts;
    Program p =
        down(course->stops[me], me, [&](const Stop& stop) { return in(stop.what.first - first); });
    p.copy(in(0), out(first), {first, course->parts});
    return p;
  };
  return s;
}

Schedule forestReduceScatter(const Forest& forest) {
  Schedule s = emptySchedule(Collective::ReduceScatter, "forest", forest.ranks, forest.ranks, 0,
                             forest.parts * forest.rounds);
  describe(forest, s);
  const auto course = courseOf(forest);
  s.tmpChunks = course->landings;
  s.program = [course](uint32_t me) {
    const uint32_t first = me * course->parts;
    return up(course->stops[me], me,
              [&](const Stop& stop) { return out(stop.what.first - first); });
  };
  return s;
}

Schedule forestAllReduce(const Forest& forest) {
  return reduceScatterAllGather("forest", forestReduceScatter(forest), forestAllGather(forest));
}

Schedule forestBroadcast(const Forest& forest) {
  const uint32_t root = forest.roots[0], parts = forest.parts * forest.rounds;
  Schedule s = emptySchedule(Collective::Broadcast, "forest", forest.ranks, parts, root);
  describe(forest, s);
  s.program = [course = courseOf(forest), root, parts](uint32_t me) {
    Program p = down(course->stops[me], me, [](const Stop& stop) { return in(stop.what.first); });
    if (me == root) p.copy(in(0), out(0), {0, parts});
    return p;
  };
  return s;
}

Schedule forestReduce(const Forest& forest) {
  const uint32_t root = forest.roots[0];
  Schedule s =
      emptySchedule(Collective::Reduce, "forest", forest.ranks, forest.parts * forest.rounds, root);
  describe(forest, s);
  const auto course = courseOf(forest);
  s.tmpChunks = course->landings;
  s.program = [course](uint32_t me) {
    return up(course->stops[me], me, [](const Stop& stop) { return out(stop.what.first); });
  };
  return s;
}

}  // namespace weft::schedule
