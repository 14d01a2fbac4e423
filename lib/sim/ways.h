// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/network.h"
#include "sim/sharing.h"
#include "sim/symmetry.h"
#include "sim/time.h"

namespace weft::sim {

// The ways between ranks, of those that no memory joins: what they use, and how long messages are on them. A
// cable of a mesh is a channel for good. Over rails there are as many ways as pairs of ranks: what uses the
// same resources is a channel as long as something is on its way.
class Ways {
 public:
  // All outlive it.
  Ways(const Network& network, const Symmetry& symmetry, Sharing& sharing);

  Time latencyBetween(std::uint32_t from, std::uint32_t to);
  // For a message that sets out at once.
  std::uint32_t channelBetween(std::uint32_t from, std::uint32_t to);
  // A message has left the channel.
  void left(std::uint32_t channel);

 private:
  struct Cable {
    enum class Kind : std::uint8_t { Unknown, Mesh, Rails } kind = Kind::Unknown;
    std::uint32_t channel = 0;
    Time latency = 0;
  };
  struct Rails {
    std::vector<Use> uses;
    double latencyNs = -1;  // below zero: not looked up yet
  };

  const Cable& cableBetween(std::uint32_t from, std::uint32_t to);
  Cable findCable(std::uint32_t from, std::uint32_t to);
  const Rails& railsOf(std::uint32_t rank, bool out);
  void gatherUses(std::uint32_t from, std::uint32_t to);
  std::uint32_t open(std::uint64_t key);

  const Network& network_;
  const Symmetry& symmetry_;
  Sharing& sharing_;
  std::vector<Cable> cables_;        // [from, local rank of to], of one node
  std::vector<Rails> out_, in_;      // by group
  std::vector<Use> uses_;            // of a way that is looked for
  std::vector<std::uint64_t> keys_;  // by channel: what finds it in open_; kNoKey: not there
  std::unordered_map<std::uint64_t, std::uint32_t>
      open_;                           // channels over rails with something on its way
  std::vector<std::uint32_t> closed_;  // that had
};

}  // namespace weft::sim
