// SPDX-License-Identifier: Apache-2.0
// Along the trees of a forest: blocks down from their roots, sums up to them. Ranks forward for others,
// and what they do is in the order of a timetable: each waits for a part when it is to send it on.
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "schedule/algorithms/generators.h"

namespace weft::schedule {
namespace {

using forest::Forest;
using forest::Tree;

// When, on the way down, and of several things at one time which is first.
using Moment = std::pair<double, uint32_t>;

struct Child {
  uint32_t rank = 0, landing = 0;  // on the way up it puts into this Tmp slot
  Moment sent, came;
};

// A tree at a rank, in one round, on the way down.
struct Stop {
  Span what;  // logical chunks
  uint32_t root = 0, parent = 0;
  Moment came;
  uint32_t landing = 0;         // on the way up: where it puts at its parent
  std::vector<Child> children;  // in the order of sending
};

struct Course {
  uint32_t ranks = 1, parts = 1;
  std::vector<std::vector<Stop>> stops;  // by rank
  uint32_t landings = 0;                 // Tmp slots on the way up, of any rank
};

class CourseMaker {
 public:
  explicit CourseMaker(const Forest& forest) : forest_(forest), next_(forest.ranks, 0) {
    course_.ranks = forest.ranks;
    course_.parts = forest.parts * forest.rounds;
    course_.stops.resize(forest.ranks);
  }

  std::shared_ptr<const Course> make() {
    for (uint32_t round = 0; round < forest_.rounds; ++round)
      for (uint32_t t = 0; t < forest_.trees.size(); ++t) add(round, t);
    course_.landings = *std::ranges::max_element(next_);
    return std::make_shared<const Course>(std::move(course_));
  }

 private:
  void add(uint32_t round, uint32_t t) {
    const Tree& tree = forest_.trees[t];
    const bool isRooted = forest_.roots.size() == 1 && forest_.ranks > 1;
    const uint32_t block = isRooted ? 0 : tree.root * course_.parts;
    const Span what{block + round * forest_.parts + tree.first, tree.parts};
    const double begin = round * forest_.timetable.roundNs;
    course_.stops[tree.root].push_back({what, tree.root, tree.root, {begin, 0}, 0, {}});
    for (uint32_t e = 0; e < tree.edges.size(); ++e) {
      const auto [from, to] = tree.edges[e];
      const forest::Passage& passage = forest_.timetable.passages[t][e];
      const Moment sent{begin + passage.sent, passage.number};
      const Moment came{begin + passage.came, passage.number};
      const uint32_t landing = std::exchange(next_[from], next_[from] + tree.parts);
      course_.stops[from].back().children.push_back({to, landing, sent, came});
      course_.stops[to].push_back({what, tree.root, from, came, landing, {}});
    }
  }

  const Forest& forest_;
  Course course_;
  std::vector<uint32_t> next_;  // landing, by rank
};

std::shared_ptr<const Course> courseOf(const Forest& forest) { return CourseMaker(forest).make(); }

// What comes in and goes on, with the chunk's slot in Out, and of the root's own in In.
template <class Input>
Program down(const std::vector<Stop>& stops, uint32_t me, Input inputOf) {
  struct Event {
    Moment at;
    uint32_t stop;
    const Child* child;  // null: has come to where it goes no further
  };
  std::vector<Event> events;
  for (uint32_t i = 0; i < stops.size(); ++i) {
    if (stops[i].children.empty()) events.push_back({stops[i].came, i, nullptr});
    for (const Child& child : stops[i].children) events.push_back({child.sent, i, &child});
  }
  std::ranges::sort(events, {}, &Event::at);
  std::vector<bool> isHere(stops.size(), false);
  Program p;
  for (const Event& event : events) {
    const Stop& stop = stops[event.stop];
    const Slot place = out(stop.what.first);
    const bool isRoot = stop.root == me;
    if (!isHere[event.stop] && !isRoot) p.wait(stop.parent, place, stop.what);
    isHere[event.stop] = true;
    if (event.child != nullptr)
      p.put(event.child->rank, isRoot ? inputOf(stop) : place, place, stop.what);
  }
  return p;
}

// The other way round, the last stop first: own addends first, then those of the children. Sums that
// this rank keeps are made at last: nobody needs them, and were one late, what others need would wait.
template <class Output>
Program up(std::vector<Stop> stops, uint32_t me, Output outputOf) {
  for (Stop& stop : stops) {
    if (stop.root == me && !stop.children.empty())
      stop.came = std::ranges::min(stop.children, {}, &Child::sent).sent;
    std::ranges::sort(stop.children, std::greater(), &Child::came);
  }
  std::ranges::stable_sort(stops, std::greater(), &Stop::came);
  std::ranges::stable_partition(stops, [&](const Stop& stop) { return stop.root != me; });
  Program p;
  for (const Stop& stop : stops) {
    std::vector<Slot> addends{in(stop.what.first)};
    for (const Child& child : stop.children) {
      p.wait(child.rank, tmp(child.landing), stop.what);
      addends.push_back(tmp(child.landing));
    }
    if (stop.root == me) {
      p.reduce(outputOf(stop), addends, stop.what);
      p.apply(ApplyId::Finish, outputOf(stop), outputOf(stop), stop.what);
      continue;
    }
    const Slot sum = addends.size() == 1 ? addends[0] : tmp(stop.children.back().landing);
    p.reduce(sum, addends, stop.what);
    p.put(stop.parent, sum, tmp(stop.landing), stop.what);
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
  s.isPaced = true;
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
