// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace weft::forest {

// The links of a job as trees see them. Rates are bytes a nanosecond, of one direction. Latencies say how
// far apart the parts of a message had better be, and decide nothing else.
struct Graph {
  // One direction of a cable.
  struct Link {
    std::uint32_t from = 0, to = 0;
    double rate = 0;
    double latencyNs = 0;
  };
  // What some ranks share, both to send and to receive, of a switch that joins all ports and is no
  // limit itself. A rank is on one port at most.
  struct Port {
    std::vector<std::uint32_t> ranks;
    double rate = 0;
    double latencyNs = 0;
  };

  std::uint32_t ranks = 0;
  std::vector<std::uint32_t> nodeOf;  // by rank
  std::vector<Link> links;            // between two ranks one at most each way
  std::vector<Port> ports;            // not between ranks that a link joins
};

// Links that carry any amount, and what no others limit.
inline constexpr double kUnlimitedRate = 1e15;
inline constexpr bool isUnlimited(double rate) { return rate > kUnlimitedRate / 1e6; }

}  // namespace weft::forest
