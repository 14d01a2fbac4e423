// SPDX-License-Identifier: Apache-2.0
#include "forest/timetable.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace weft::forest {
namespace {

constexpr std::uint32_t kNone = ~0u;

// The times of a round at which something is busy.
class Calendar {
 public:
  Calendar(double rate, double roundNs) : rate_(rate), roundNs_(roundNs) {}
  double rate() const { return rate_; }

  // From when until when so many bytes pass: from `ready` on, in the gaps that are left.
  std::pair<double, double> take(double ready, double bytes) {
    double left = bytes / rate_, begin = kNever, end = ready;
    // Rounding may ask for a little more than there is.
    for (double at = ready; left > kShort * roundNs_ && at < ready + 1.01 * roundNs_;) {
      const double round = std::floor(at / roundNs_) * roundNs_;
      const auto [from, to] = gapAt(at - round);
      if (from < roundNs_) {
        const double until = std::min(to, from + left);
        occupy(from, until);
        left -= until - from;
        begin = std::min(begin, std::max(ready, round + from));
        end = at = std::max(at, round + until);
      } else {
        at = round + roundNs_;
      }
    }
    return {std::min(begin, end), end};
  }

 private:
  static constexpr double kShort = 1e-9;  // of a round
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // The first gap that ends after `at`, from there on; it may be none, at the end of the round.
  std::pair<double, double> gapAt(double at) const {
    auto next = busy_.upper_bound(at);
    if (next != busy_.begin() && std::prev(next)->second > at) at = std::prev(next)->second;
    while (next != busy_.end() && next->first <= at + kShort * roundNs_) at = (next++)->second;
    return {at, next == busy_.end() ? roundNs_ : next->first};
  }

  void occupy(double from, double to) {
    const auto next = busy_.lower_bound(from);
    auto before = next == busy_.begin() ? busy_.end() : std::prev(next);
    if (before != busy_.end() && before->second >= from - kShort * roundNs_)
      before->second = to;
    else
      before = busy_.emplace(from, to).first;
    if (next == busy_.end() || next->first > to + kShort * roundNs_) return;
    before->second = next->second;
    busy_.erase(next);
  }

  double rate_, roundNs_;
  std::map<double, double> busy_;
};

class Planner {
 public:
  Planner(const Graph& graph, const std::vector<Tree>& trees, double partBytes, double roundNs)
      : graph_(graph), trees_(trees), partBytes_(partBytes), portOf_(graph.ranks, kNone) {
    for (const Graph::Link& link : graph.links) {
      cables_[{link.from, link.to}] = {static_cast<std::uint32_t>(calendars_.size()),
                                       link.latencyNs};
      calendars_.emplace_back(link.rate, roundNs);
    }
    firstPort_ = static_cast<std::uint32_t>(calendars_.size());
    for (std::uint32_t p = 0; p < graph.ports.size(); ++p) {
      for (const std::uint32_t rank : graph.ports[p].ranks) portOf_[rank] = p;
      for (int side = 0; side < 2; ++side) calendars_.emplace_back(graph.ports[p].rate, roundNs);
    }
    result_.roundNs = roundNs;
    for (const Tree& tree : trees) addTree(tree);
  }

  Timetable run() {
    for (std::uint32_t t = 0; t < trees_.size(); ++t) leave(t, trees_[t].root, 0);
    while (!waiting_.empty()) {
      const Waiting next = waiting_.top();
      waiting_.pop();
      pass(next);
    }
    return std::move(result_);
  }

 private:
  struct Cable {
    std::uint32_t calendar = 0;
    double latencyNs = 0;
  };
  struct Waiting {
    double since = 0, tail = 0;
    std::uint32_t tree = 0, edge = 0;
    // Of those that are ready at one time first the one with the longest way before it.
    bool operator>(const Waiting& o) const {
      return std::tuple(since, -tail, tree, edge) > std::tuple(o.since, -o.tail, o.tree, o.edge);
    }
  };

  double latencyOf(const Tree::Edge& edge) const {
    if (const auto cable = cables_.find({edge.from, edge.to}); cable != cables_.end())
      return cable->second.latencyNs;
    return std::max(graph_.ports[portOf_[edge.from]].latencyNs,
                    graph_.ports[portOf_[edge.to]].latencyNs);
  }
  double slowest(const Tree::Edge& edge) const {
    if (const auto cable = cables_.find({edge.from, edge.to}); cable != cables_.end())
      return calendars_[cable->second.calendar].rate();
    return std::min(graph_.ports[portOf_[edge.from]].rate, graph_.ports[portOf_[edge.to]].rate);
  }

  void addTree(const Tree& tree) {
    auto& edges = edges_.emplace_back(graph_.ranks);
    std::vector<double> tails(graph_.ranks, 0);
    for (std::uint32_t e = 0; e < tree.edges.size(); ++e) edges[tree.edges[e].from].push_back(e);
    for (auto edge = tree.edges.rbegin(); edge != tree.edges.rend(); ++edge)
      tails[edge->from] = std::max(tails[edge->from], tails[edge->to] + latencyOf(*edge) +
                                                          tree.parts * partBytes_ / slowest(*edge));
    tails_.push_back(std::move(tails));
    result_.passages.emplace_back(tree.edges.size());
  }

  void leave(std::uint32_t t, std::uint32_t rank, double at) {
    for (const std::uint32_t e : edges_[t][rank])
      waiting_.push({at, tails_[t][trees_[t].edges[e].to], t, e});
  }

  // Over a cable, or out over a port and in over another, as soon as the first byte is there.
  void pass(const Waiting& what) {
    const Tree& tree = trees_[what.tree];
    const Tree::Edge& edge = tree.edges[what.edge];
    const double bytes = tree.parts * partBytes_;
    std::pair<double, double> times;
    if (const auto cable = cables_.find({edge.from, edge.to}); cable != cables_.end()) {
      times = calendars_[cable->second.calendar].take(what.since, bytes);
    } else {
      times = calendars_[firstPort_ + 2 * portOf_[edge.from]].take(what.since, bytes);
      const auto in = calendars_[firstPort_ + 2 * portOf_[edge.to] + 1].take(times.first, bytes);
      times.second = std::max(times.second, in.second);
    }
    const double came = times.second + latencyOf(edge);
    result_.passages[what.tree][what.edge] = {times.first, came, number_++};
    result_.longestNs = std::max(result_.longestNs, came);
    leave(what.tree, edge.to, came);
  }

  const Graph& graph_;
  const std::vector<Tree>& trees_;
  const double partBytes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Cable> cables_;
  std::vector<std::uint32_t> portOf_;
  std::uint32_t firstPort_ = 0;
  std::vector<Calendar> calendars_;
  std::vector<std::vector<std::vector<std::uint32_t>>> edges_;  // by tree and rank where they begin
  std::vector<std::vector<double>> tails_;                      // by tree and rank
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  std::uint32_t number_ = 0;
  Timetable result_;
};

}  // namespace

Timetable timetableOf(const Graph& graph, const std::vector<Tree>& trees, double partBytes,
                      double roundNs) {
  return Planner(graph, trees, partBytes, roundNs).run();
}

}  // namespace weft::forest
