// SPDX-License-Identifier: Apache-2.0
#include "forest/balance.h"

#include <algorithm>
#include <array>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "forest/pack.h"

namespace weft::forest {
namespace {

constexpr double kRounding = 1e-9;
constexpr std::uint32_t kTries = 1 << 16;  // flows in vain, for a rank by itself
constexpr double kBusyCable = 0.9;         // as kBusyPort

// What carries parts from one rank straight to another: a cable, or a port's two sides.
using Carriers = std::array<std::uint32_t, 2>;

class Balancer {
 public:
  Balancer(const Graph& graph, double unitsPerRate, UnitGraph* units)
      : units_(*units),
        ranks_(graph.ranks),
        portOf_(ranks_, kNone),
        cable_(ranks_ * ranks_, kNone) {
    const auto add = [&](double rate, bool isPort) {
      isPort_.push_back(isPort);
      perPart_.push_back(isUnlimited(rate) ? 0 : 1 / (rate * unitsPerRate));
      return static_cast<std::uint32_t>(perPart_.size() - 1);
    };
    for (const Graph::Port& port : graph.ports) {
      const std::uint32_t out = add(port.rate, true);
      add(port.rate, true);
      for (const std::uint32_t rank : port.ranks) portOf_[rank] = out;
    }
    for (const Graph::Link& link : graph.links)
      cable_[link.from * ranks_ + link.to] = add(link.rate, false);
    loads_.resize(perPart_.size(), 0);
    isSettled_.resize(perPart_.size(), false);
    for (std::uint32_t from = 0; from < ranks_; ++from)
      for (std::uint32_t to = 0; to < ranks_; ++to)
        if (from != to && units_.between(from, to) > 0) count(from, to, units_.between(from, to));
  }

  void run() {
    trim();
    for (std::uint32_t busiest = busiestOne(); busiest != kNone; busiest = busiestOne())
      if (!relieve(busiest)) isSettled_[busiest] = true;
    spread();
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;

  bool isJoined(std::uint32_t from, std::uint32_t to) const {
    return cable_[from * ranks_ + to] != kNone || (portOf_[from] != kNone && portOf_[to] != kNone);
  }
  Carriers carriersOf(std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t cable = cable_[from * ranks_ + to];
    if (cable != kNone) return {cable, cable};
    return {portOf_[from], portOf_[to] + 1};
  }
  void count(std::uint32_t from, std::uint32_t to, Units parts) {
    const Carriers some = carriersOf(from, to);
    loads_[some[0]] += parts * perPart_[some[0]];
    if (some[1] != some[0]) loads_[some[1]] += parts * perPart_[some[1]];
  }
  double loadOf(std::uint32_t from, std::uint32_t to) const {
    double most = 0;
    for (const std::uint32_t one : carriersOf(from, to)) most = std::max(most, loads_[one]);
    return most;
  }

  std::uint32_t busiestOne() const {
    std::uint32_t busiest = kNone;
    for (std::uint32_t i = 0; i < loads_.size(); ++i)
      if (!isSettled_[i] && loads_[i] > (isPort_[i] ? kBusyPort : kBusyCable) &&
          (busiest == kNone || loads_[i] > loads_[busiest]))
        busiest = i;
    return busiest;
  }

  // What is not needed, from the busiest first, an eighth at a time. Loads only fall meanwhile, so a way
  // whose load is looked at when it comes up, and is what it was, is the busiest.
  void trim() {
    struct Way {
      double load;
      Tree::Edge at;
      bool operator<(const Way& other) const {  // of equal ones the first
        return std::tuple(load, other.at.from, other.at.to) <
               std::tuple(other.load, at.from, at.to);
      }
    };
    std::priority_queue<Way> ways;
    for (std::uint32_t from = 0; from < ranks_; ++from)
      for (std::uint32_t to = 0; to < ranks_; ++to)
        if (from != to && units_.between(from, to) > 0 && loadOf(from, to) > 0)
          ways.push({loadOf(from, to), {from, to}});
    while (!ways.empty()) {
      const Way busiest = ways.top();
      const auto [from, to] = busiest.at;
      ways.pop();
      if (loadOf(from, to) < busiest.load) {
        ways.push({loadOf(from, to), busiest.at});
        continue;
      }
      const Units all = units_.between(from, to), some = (all + 7) / 8;
      const Units less = units_.take(from, to, some);
      count(from, to, -less);
      if (less == some && less < all) ways.push({loadOf(from, to), busiest.at});
    }
  }

  // Cables that have time to spare may be used as far as that does no harm: trees are less deep then.
  void spread() {
    for (std::uint32_t from = 0; from < ranks_; ++from)
      for (std::uint32_t to = 0; to < ranks_; ++to) {
        const std::uint32_t cable = cable_[from * ranks_ + to];
        if (cable == kNone || perPart_[cable] == 0) continue;
        const double most = std::min<double>(kBusyCable / perPart_[cable], units_.total());
        units_.give(from, to, std::max(0, static_cast<Units>(most) - units_.between(from, to)));
      }
  }

  // Some part that this one carries comes to its rank from elsewhere.
  bool relieve(std::uint32_t busiest) {
    for (std::uint32_t to = 0; to < ranks_; ++to)
      for (std::uint32_t from = 0; from < ranks_; ++from) {
        if (from == to || units_.between(from, to) == 0) continue;
        const Carriers some = carriersOf(from, to);
        if ((some[0] == busiest || some[1] == busiest) && moves(from, to, busiest)) return true;
      }
    return false;
  }

  bool moves(std::uint32_t from, std::uint32_t to, std::uint32_t busiest) {
    for (std::uint32_t other = 0; other < ranks_; ++other) {
      if (other == from || other == to || !isJoined(other, to)) continue;
      Units parts = units_.between(from, to);
      while (parts > 0 && !isBetter(from, other, to, parts, busiest)) parts /= 2;
      if (parts == 0) continue;
      if (triesLeft_ == 0) return false;
      const Units done = units_.move(from, other, to, parts);
      if (done == 0) --triesLeft_;
      if (done == 0) continue;
      count(from, to, -done);
      count(other, to, done);
      return true;
    }
    return false;
  }

  // Is what then carries them less busy than what did?
  bool isBetter(std::uint32_t from, std::uint32_t other, std::uint32_t to, Units parts,
                std::uint32_t busiest) {
    const double before = loads_[busiest];
    count(from, to, -parts);
    count(other, to, parts);
    bool better = loads_[busiest] < before - kRounding;
    for (const std::uint32_t one : carriersOf(other, to))
      better = better && (loads_[one] < before - kRounding || isOf(one, from, to));
    count(other, to, -parts);
    count(from, to, parts);
    return better;
  }
  bool isOf(std::uint32_t carrier, std::uint32_t from, std::uint32_t to) const {
    const Carriers some = carriersOf(from, to);
    return carrier == some[0] || carrier == some[1];
  }

  UnitGraph& units_;
  const std::uint32_t ranks_;
  std::uint32_t triesLeft_ = kTries / ranks_;  // in vain
  std::vector<std::uint32_t> portOf_, cable_;
  std::vector<double> perPart_, loads_;  // of each cable and side of a port, in shares of its time
  std::vector<bool> isPort_, isSettled_;
};

}  // namespace

void balance(const Graph& graph, double unitsPerRate, UnitGraph* units) {
  Balancer(graph, unitsPerRate, units).run();
}

}  // namespace weft::forest
