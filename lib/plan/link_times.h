// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/link_costs.h"
#include "plan/op_prices.h"

namespace weft::plan {

// How often a rank waits for others after it has sent to them, and at the end others for it.
struct Rounds {
  double count = 0;
  bool sent = false;
  void end() { count += std::exchange(sent, false); }
};

// As plan/walk.h, for calls of so many ops that a few ranks must stand for all: what of it goes over
// the rails between nodes, and over the cables inside them, beside what cores do.
class LinkTimes {
 public:
  explicit LinkTimes(OpPrices& prices);

  // Of ranks that do alike: one segment's way through a rank, and the busiest thing for each further
  // one.
  double alikeNs();
  // Of a rooted call: the chain of messages, and the busiest link or core (which works so long).
  double rootedNs(double core);

 private:
  // What passes over the links of one kind.
  struct Traffic {
    double ns = 0;        // of the busiest link
    double messages = 0;  // that the busiest rank sends, or gets
    double rounds = 0;    // in which somebody else waits for such a message
    double longest = 0;   // ns of a message on its link, all segments of it
  };
  struct Exchanged;
  struct Pass;

  Pass passOf(std::uint32_t rank);
  Exchanged exchangedBy(std::uint32_t rank, Medium by, Traffic* traffic);
  Traffic ofRails();
  Traffic ofCables();
  double chainNs(const Traffic& traffic, Medium by) const;
  double partOfHops(Medium by) const;

  OpPrices& prices_;
  const CostParameters& costs_;
  const LinkCosts links_;
  const std::uint32_t root_;
  std::vector<std::uint32_t> mates_;  // the other ranks of the root's node
  double nodes_ = 1;
};

}  // namespace weft::plan
