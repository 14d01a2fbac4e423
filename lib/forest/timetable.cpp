// SPDX-License-Identifier: Apache-2.0
#include "forest/timetable.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <utility>

namespace weft::forest {
namespace {

constexpr std::uint32_t kNone = ~0u;
constexpr std::uint64_t kArrival = ~std::uint64_t{0};
constexpr std::uint32_t kWindow = 4;    // segments under way
constexpr std::uint32_t kSegments = 7;  // of which the last but one is looked at
// When a root starts a round after the one before, of the time that links need for it. At once, all that
// it has would stand in the way of what others have to forward; the measured best of 0, 0.5 and 1.
constexpr double kPace = 0.5;

class Timetable {
 public:
  Timetable(const Graph& graph, const std::vector<Tree>& trees, std::uint32_t rounds,
            double partBytes, double roundNs)
      : graph_(graph),
        trees_(trees),
        rounds_(rounds),
        partBytes_(partBytes),
        startNs_(kPace * roundNs),
        ways_(std::size_t{graph.ranks} * graph.ranks, kNone),
        sharers_(2 * graph.ports.size()),
        portOf_(graph.ranks, kNone),
        left_(kSegments, rounds * trees.size() * graph.ranks) {
    for (std::uint32_t p = 0; p < graph.ports.size(); ++p)
      for (const std::uint32_t rank : graph.ports[p].ranks) portOf_[rank] = p;
    for (const Graph::Link& link : graph.links) {
      Way& way = addWay(link.from, link.to);
      way.rate = link.rate;
      way.latencyNs = link.latencyNs;
    }
    for (const Tree& tree : trees) addTree(tree);
  }

  std::vector<Visit> run() {
    for (std::uint32_t segment = 0; segment < kWindow; ++segment) open(segment);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.version == kArrival) {
        now_ = event.at;
        arrive(arrivals_[event.what]);
      } else if (event.version == all_[event.what].version) {
        now_ = event.at;
        finish(event.what);
      }
    }
    return std::move(order_);
  }

 private:
  struct Part {
    std::uint32_t segment = 0, round = 0, tree = 0, rank = 0;  // where it goes
  };
  // From one rank to one other.
  struct Way {
    std::uint32_t out = kNone, in = kNone;  // of a port: of all sharers
    double rate = 0, latencyNs = 0;
    std::deque<Part> parts;
    double left = 0, since = 0;  // bytes of the first
    std::uint64_t version = 0;
  };
  struct Event {
    double at = 0;
    std::uint64_t number = 0;
    std::uint32_t what = 0;            // a way, or an arrival
    std::uint64_t version = kArrival;  // of a way
    bool operator>(const Event& o) const { return at != o.at ? at > o.at : number > o.number; }
  };

  Way& addWay(std::uint32_t from, std::uint32_t to) {
    std::uint32_t& way = ways_[from * graph_.ranks + to];
    if (way == kNone) {
      way = static_cast<std::uint32_t>(all_.size());
      all_.emplace_back();
    }
    return all_[way];
  }

  void addTree(const Tree& tree) {
    auto& children = children_.emplace_back(graph_.ranks);
    std::vector<std::uint32_t> heights(graph_.ranks, 0);
    for (const Tree::Edge& edge : tree.edges) {
      children[edge.from].push_back(edge.to);
      if (ways_[edge.from * graph_.ranks + edge.to] != kNone) continue;
      Way& way = addWay(edge.from, edge.to);
      way.out = 2 * portOf_[edge.from];
      way.in = 2 * portOf_[edge.to] + 1;
      way.latencyNs = std::max(graph_.ports[portOf_[edge.from]].latencyNs,
                               graph_.ports[portOf_[edge.to]].latencyNs);
    }
    for (auto edge = tree.edges.rbegin(); edge != tree.edges.rend(); ++edge)
      heights[edge->from] = std::max(heights[edge->from], heights[edge->to] + 1);
    for (auto& some : children)
      std::ranges::stable_sort(some, std::greater(), [&](std::uint32_t r) { return heights[r]; });
    heights_.push_back(heights[tree.root]);
  }

  void open(std::uint32_t segment) {
    std::vector<std::uint32_t> order(trees_.size());
    for (std::uint32_t t = 0; t < order.size(); ++t) order[t] = t;
    std::ranges::stable_sort(order, std::greater(), [&](std::uint32_t t) { return heights_[t]; });
    for (std::uint32_t round = 0; round < rounds_; ++round)
      for (const std::uint32_t t : order)
        post({segment, round, t, trees_[t].root}, now_ + round * startNs_);
  }

  void post(const Part& part, double at) {
    events_.push({at, number_++, static_cast<std::uint32_t>(arrivals_.size())});
    arrivals_.push_back(part);
  }

  void arrive(const Part part) {
    if (part.segment + 2 == kSegments) order_.push_back({part.round, part.tree, part.rank});
    for (const std::uint32_t child : children_[part.tree][part.rank]) {
      const std::uint32_t number = ways_[part.rank * graph_.ranks + child];
      Way& way = all_[number];
      way.parts.push_back({part.segment, part.round, part.tree, child});
      if (way.parts.size() == 1) start(number);
    }
    if (--left_[part.segment] == 0 && part.segment + kWindow < kSegments)
      open(part.segment + kWindow);
  }

  void start(std::uint32_t number) {
    Way& way = all_[number];
    way.left = partBytes_ * trees_[way.parts.front().tree].parts;
    way.since = now_;
    if (way.out == kNone) return predict(number);
    sharers_[way.out].push_back(number);
    sharers_[way.in].push_back(number);
    share(way.out, way.in);
  }

  void finish(std::uint32_t number) {
    Way& way = all_[number];
    const std::uint32_t from = way.out, to = way.in;
    const Part part = way.parts.front();
    way.parts.pop_front();
    ++way.version;
    post(part, now_ + way.latencyNs);
    if (from == kNone) {
      if (!way.parts.empty()) start(number);
      return;
    }
    std::erase(sharers_[from], number);
    std::erase(sharers_[to], number);
    if (!way.parts.empty()) return start(number);
    way.rate = 0;
    share(from, to);
  }

  // Of the ways over these two sides of ports, each gets an equal part of either.
  void share(std::uint32_t out, std::uint32_t in) {
    for (const std::uint32_t side : {out, in})
      for (const std::uint32_t number : sharers_[side]) {
        Way& way = all_[number];
        const double rate = std::min(partOf(way.out), partOf(way.in));
        if (rate == way.rate) {
          if (way.since == now_) predict(number);
          continue;
        }
        way.left -= way.rate * (now_ - way.since);
        way.since = now_;
        way.rate = rate;
        predict(number);
      }
  }
  double partOf(std::uint32_t side) const {
    return graph_.ports[side / 2].rate / static_cast<double>(sharers_[side].size());
  }

  void predict(std::uint32_t number) {
    Way& way = all_[number];
    const double at = way.since + std::max(0.0, way.left) / way.rate;
    events_.push({std::max(at, now_), number_++, number, ++way.version});
  }

  const Graph& graph_;
  const std::vector<Tree>& trees_;
  const std::uint32_t rounds_;
  const double partBytes_, startNs_;
  std::vector<std::uint32_t> ways_;  // by pair of ranks
  std::vector<Way> all_;
  std::vector<std::vector<std::uint32_t>> sharers_;  // of each side of each port
  std::vector<std::uint32_t> portOf_;
  std::vector<std::size_t> left_;                                  // by segment: visits
  std::vector<std::vector<std::vector<std::uint32_t>>> children_;  // by tree and rank
  std::vector<std::uint32_t> heights_;
  std::vector<Part> arrivals_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Visit> order_;
  double now_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace

std::vector<Visit> orderOf(const Graph& graph, const std::vector<Tree>& trees, std::uint32_t rounds,
                           double partBytes, double roundNs) {
  return Timetable(graph, trees, rounds, partBytes, roundNs).run();
}

}  // namespace weft::forest
