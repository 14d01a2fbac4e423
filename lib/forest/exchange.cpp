// SPDX-License-Identifier: Apache-2.0
#include "forest/exchange.h"

#include <array>
#include <set>
#include <vector>

namespace weft::forest {
namespace {

// A search, breadth first, for the least number of pairs that change partners: for one at most, or for
// several.
class Exchange {
 public:
  Exchange(bool isDeep, UnitGraph* units)
      : isDeep_(isDeep),
        units_(*units),
        ranks_(units->ranks()),
        triesLeft_(isDeep ? kTries / ranks_ : kNoEnd) {}

  bool run(std::uint32_t from, std::uint32_t to) {
    seen_.clear();
    states_.assign(1, {{from, to}, {}, {}, 0});
    for (std::size_t i = 0; i < (isDeep_ ? states_.size() : 1); ++i) {
      apply(i, 1);
      if (goOn(i)) return true;
      apply(i, -1);
    }
    return false;
  }

 private:
  static constexpr std::uint32_t kTries = 1 << 16;  // for a rank by itself
  static constexpr std::uint32_t kNoEnd = ~0u;

  // What is left over, and which pair has given way to which other one, after another state.
  struct State {
    Pair left, old, made;
    std::size_t before = 0;
  };

  void replace(const State& state, Units parts) {
    units_.shift(state.old.from, state.old.to, -parts);
    units_.shift(state.made.from, state.made.to, parts);
  }
  void apply(std::size_t i, Units parts) {
    for (; i > 0; i = states_[i].before) replace(states_[i], parts);
  }

  bool goOn(std::size_t i) {
    const Pair left = states_[i].left;
    for (std::uint32_t a = 0; a < ranks_; ++a)
      for (std::uint32_t b = 0; b < ranks_; ++b) {
        if (!units_.mayJoin(a, b) || units_.between(a, b) == 0) continue;
        if (a != left.from && tryOne({{a, left.to}, {a, b}, {left.from, b}, i})) return true;
        if (b != left.to && tryOne({{left.from, b}, {a, b}, {a, left.to}, i})) return true;
      }
    return false;
  }
  bool tryOne(const State& next) {
    if (!units_.mayJoin(next.made.from, next.made.to)) return false;
    if (!seen_.insert({next.left.from, next.left.to, next.old.from, next.old.to}).second)
      return false;
    if (triesLeft_ == 0) return false;
    --triesLeft_;
    replace(next, 1);
    if (units_.isEnough()) {
      states_.push_back(next);
      if (isPlaced(next.left)) return true;
    }
    replace(next, -1);
    return false;
  }
  bool isPlaced(const Pair& left) {
    if (units_.mayJoin(left.from, left.to)) {
      units_.shift(left.from, left.to, 1);
      if (units_.isEnough()) return true;
      units_.shift(left.from, left.to, -1);
    }
    return isDeep_ && units_.isEnoughWithoutSwitch();
  }

  const bool isDeep_;
  UnitGraph& units_;
  const std::uint32_t ranks_;
  std::uint32_t triesLeft_;
  std::set<std::array<std::uint32_t, 4>> seen_;  // by what is left over, and what gave way last
  std::vector<State> states_;
};

}  // namespace

void exchangeRest(UnitGraph* units) {
  for (const bool isDeep : {false, true}) {
    Exchange exchange(isDeep, units);
    for (std::uint32_t to = 0; to < units->ranks(); ++to)
      for (std::uint32_t from = 0; from < units->ranks(); ++from)
        while (units->outOf(from) > 0 && units->into(to) > 0) {
          if (isDeep && units->isEnoughWithoutSwitch()) return;
          if (!exchange.run(from, to)) break;
        }
  }
}

}  // namespace weft::forest
