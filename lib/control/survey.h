// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "control/bodies.h"
#include "control/call_tree.h"

namespace weft::control {

// What ranks do, by groups of those that do the same: what there is to say of a job in which all is
// well does not grow with it.
class Survey {
 public:
  struct State {
    std::uint64_t callSeq = 0, fingerprint = 0;
    bool inCall = false, left = false;
    auto operator<=>(const State&) const = default;
  };

  // Ranks in their order.
  void add(std::uint32_t rank, const PageReport& page);

  // One rank of each group whose calls have to be known, to tell whether all agree and what it did;
  // of those that may be asked. The furthest first, at most kMostAsked.
  using May = std::function<bool(std::uint32_t rank)>;
  std::vector<std::uint32_t> whomToAsk(const CallTree& calls, const May& mayAsk) const;
  static constexpr std::size_t kMostAsked = 16;

  // `whole`: these are all ranks.
  News news(const CallTree& calls, bool whole) const;

 private:
  std::map<State, RankSet> groups_;
};

}  // namespace weft::control
