// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "plan/link_costs.h"
#include "plan/op_prices.h"

namespace weft::plan {

// How long a call takes whose ranks do not all share memory: the first segment walks through all
// ranks, message by message, and each further one takes as long as the busiest core or link needs
// for it. That is LogGP (Alexandrov et al., SPAA 1995) with o at both ends, and what leaves a rank at
// once over its rails leaves them side by side.
//
// The simulator (lib/sim) runs the bound plans on the same figures, with segments beside each other and
// each link shared by whoever uses it then: `weft-sim --ways` prints both.
class Walk {
 public:
  explicit Walk(OpPrices& prices);

  // Is it worth it? It looks at all ops of all ranks.
  static bool isShort(OpPrices& prices);
  double ns();

 private:
  // Bytes that one rank, or one node, sends and gets over rails in a segment.
  struct Ports {
    double out = 0, in = 0;
    double most() const { return out > in ? out : in; }
  };
  // A message on its way: when its first byte comes at the earliest, and its last one.
  struct Message {
    double begin = 0, end = 0;
  };
  struct Flow {
    double at = 0, ns = 0, latency = 0;
    std::uint64_t key = 0;
  };
  struct Idle {
    double begin = 0, end = 0;
  };
  struct State {
    std::size_t next = 0;  // op
    double now = 0, core = 0;
    double out = 0;                // when its rails are free
    double inBegin = 0, inNs = 0;  // since when they bring something, and how long at least
    std::vector<Idle> idle;        // when its core had nothing to do
    std::vector<Flow> leaving;     // over its rails, since it waited last
    std::uint64_t awaits = 0;      // a message's key
  };

  std::uint64_t keyOf(std::uint32_t from, std::uint32_t to, const schedule::Op& op) const;
  void countBytes();
  void advance(std::uint32_t rank);
  void send(std::uint32_t rank, const schedule::Op& op, Medium by);
  bool receive(std::uint32_t rank, const schedule::Op& op, Medium by);
  void work(State& state, double ns);
  bool wasIdle(State& state, double since, double ns) const;
  void leave(std::uint32_t rank);
  void post(std::uint64_t key, const Message& message);
  double railNs(std::uint32_t rank, double bytes) const;
  double busiestNs() const;

  OpPrices& prices_;
  const CostParameters& costs_;
  const LinkCosts links_;
  const std::uint32_t ranks_;
  std::vector<State> states_;
  std::vector<Ports> ofRank_, ofNode_;
  double cables_ = 0;  // ns of the busiest one
  std::unordered_map<std::uint64_t, Message> messages_;
  std::unordered_map<std::uint64_t, std::uint32_t> waiting_;  // by key: who
  std::vector<std::uint32_t> ready_;
};

}  // namespace weft::plan
