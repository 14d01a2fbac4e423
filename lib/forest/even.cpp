// SPDX-License-Identifier: Apache-2.0
#include "forest/even.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "forest/balance.h"

namespace weft::forest {
namespace {

constexpr double kFullSide = 0.95;  // of its time

// One direction of a port, and the pairs that use it.
struct Side {
  double perPart = 0;  // of its time
  double parts = 0, squares = 0, pairs = 0;

  void change(double before, double after) {
    parts += after - before;
    squares += after * after - before * before;
    pairs += (after > 0 ? 1 : 0) - (before > 0 ? 1 : 0);
  }
  double load() const { return parts * perPart; }
  bool isFull() const { return load() > kFullSide; }
  // How unlike the pairs are, the variance of their parts in squares of the mean, times the load.
  double cost() const { return parts > 0 ? load() * (pairs * squares / (parts * parts) - 1) : 0; }
};

class Evener {
 public:
  Evener(const Graph& graph, double unitsPerRate, UnitGraph* units)
      : units_(*units),
        ranks_(graph.ranks),
        looksLeft_(kLooks / (std::uint64_t{ranks_} * ranks_)),
        triesLeft_(kTries / (std::uint64_t{ranks_} * ranks_)),
        portOf_(ranks_, kNone) {
    for (std::uint32_t p = 0; p < graph.ports.size(); ++p) {
      for (const std::uint32_t rank : graph.ports[p].ranks) portOf_[rank] = p;
      for (std::vector<Side>* sides : {&out_, &in_})
        sides->push_back({1 / (graph.ports[p].rate * unitsPerRate), 0, 0, 0});
    }
    parts_.resize(std::size_t{ranks_} * ranks_, 0);
    for (std::uint32_t from = 0; from < ranks_; ++from)
      for (std::uint32_t to = 0; to < ranks_; ++to)
        if (isByPort({from, to})) add({from, to}, units_.between(from, to));
  }

  // How much the pair with the most carries to what one carries in the mean, in the mean of all that is full.
  double unevenness() const {
    std::vector<Units> outMost(out_.size(), 0), inMost(in_.size(), 0);
    for (std::uint32_t from = 0; from < ranks_; ++from)
      for (std::uint32_t to = 0; to < ranks_; ++to) {
        const Units parts = partsOf({from, to});
        if (parts == 0) continue;
        outMost[portOf_[from]] = std::max(outMost[portOf_[from]], parts);
        inMost[portOf_[to]] = std::max(inMost[portOf_[to]], parts);
      }
    double sum = 0, full = 0;
    const auto count = [&](const Side& side, Units most) {
      if (!side.isFull()) return;
      sum += most * side.pairs / side.parts;
      ++full;
    };
    for (std::uint32_t p = 0; p < out_.size(); ++p) {
      count(out_[p], outMost[p]);
      count(in_[p], inMost[p]);
    }
    return full > 0 ? sum / full : 1;
  }

  void run() {
    for (bool any = true; any && looksLeft_ > 0 && triesLeft_ > 0;) {
      any = false;
      for (std::uint32_t from = 0; from < ranks_; ++from)
        for (std::uint32_t to = 0; to < ranks_; ++to)
          while (isMuch({from, to}) && relieve({from, to})) any = true;
    }
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  // Looks at all other pairs, and flows that say whether others will do; of one rank by itself.
  static constexpr std::uint64_t kLooks = 1 << 26, kTries = 1 << 20;
  static constexpr double kLess = 1e-9;

  bool isByPort(Pair pair) const {
    return units_.mayJoin(pair.from, pair.to) && portOf_[pair.from] != kNone &&
           portOf_[pair.to] != kNone;
  }
  Side& sender(Pair pair) { return out_[portOf_[pair.from]]; }
  Side& receiver(Pair pair) { return in_[portOf_[pair.to]]; }
  Units partsOf(Pair pair) const { return parts_[pair.from * ranks_ + pair.to]; }

  void add(Pair pair, Units more) {
    const Units before = partsOf(pair), after = before + more;
    for (Side* side : {&sender(pair), &receiver(pair)}) {
      cost_ -= side->cost();
      side->change(before, after);
      cost_ += side->cost();
    }
    parts_[pair.from * ranks_ + pair.to] = after;
  }

  // More than others that use the same?
  bool isMuch(Pair pair) {
    if (partsOf(pair) == 0) return false;
    const auto isAbove = [&](const Side& side) { return partsOf(pair) * side.pairs > side.parts; };
    return isAbove(sender(pair)) || isAbove(receiver(pair));
  }

  // Fewer parts of a pair: it changes partners with another one, or its rank gets them from elsewhere.
  bool relieve(Pair pair) {
    if (looksLeft_ == 0) return false;
    --looksLeft_;
    for (std::uint32_t from = 0; from < ranks_; ++from)
      for (std::uint32_t to = 0; to < ranks_; ++to)
        if (from != pair.from && to != pair.to && exchange(pair, {from, to})) return true;
    for (std::uint32_t from = 0; from < ranks_; ++from)
      if (from != pair.from && move(pair, {from, pair.to})) return true;
    return false;
  }

  bool exchange(Pair a, Pair b) {
    const Pair c{a.from, b.to}, d{b.from, a.to};
    if (partsOf(b) == 0 || !isByPort(c) || !isByPort(d)) return false;
    for (Units parts = std::min(partsOf(a), partsOf(b)); parts > 0; parts /= 2)
      if (shift({a, b}, {c, d}, parts)) return true;
    return false;
  }

  bool move(Pair a, Pair b) {
    if (!isByPort(b)) return false;
    for (Units parts = partsOf(a); parts > 0; parts /= 2)
      if (shift({a}, {b}, parts)) return true;
    return false;
  }

  // Parts of some pairs to others, if ports are less uneven then, no busy sender becomes busier than this
  // one was, and all parts still come to all ranks.
  bool shift(std::initializer_list<Pair> some, std::initializer_list<Pair> others, Units parts) {
    const auto each = [&](Units sign, auto&& change) {
      for (const Pair pair : some) change(pair, -sign * parts);
      for (const Pair pair : others) change(pair, sign * parts);
    };
    const auto count = [&](Pair pair, Units more) { add(pair, more); };
    const auto give = [&](Pair pair, Units more) { units_.give(pair.from, pair.to, more); };
    const double cost = cost_, most = std::max(kBusyPort, sender(*some.begin()).load()) + kLess;
    each(1, count);
    if (cost_ < cost - kLess && sender(*others.begin()).load() <= most && triesLeft_ > 0) {
      --triesLeft_;
      each(1, give);
      if (units_.isEnough()) return true;
      each(-1, give);
    }
    each(-1, count);
    return false;
  }

  UnitGraph& units_;
  const std::uint32_t ranks_;
  std::uint64_t looksLeft_, triesLeft_;
  std::vector<std::uint32_t> portOf_;  // by rank
  std::vector<Side> out_, in_;         // by port
  std::vector<Units> parts_;           // by pair: what it carries over ports
  double cost_ = 0;
};

}  // namespace

UnitGraph even(const Graph& graph, double unitsPerRate, const UnitGraph& units) {
  constexpr double kEven = 1.2;  // from there on it is not worth it, see docs/prediction.md
  UnitGraph evened = units;
  Evener evener(graph, unitsPerRate, &evened);
  const double before = evener.unevenness();
  if (before <= 1) return units;
  evener.run();
  return evener.unevenness() < std::min(before, kEven) ? evened : units;
}

}  // namespace weft::forest
