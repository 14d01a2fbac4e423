// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/network.h"
#include "sim/sharing.h"
#include "sim/symmetry.h"

namespace weft::sim {

// A way that messages take: the channel of what they use, and how long they are on it.
struct Way {
  std::uint32_t channel = 0;
  Time latency = 0;
};

// The ways between ranks. Those that use the same resources are one.
class Ways {
 public:
  // All outlive it.
  Ways(const Network& network, const Symmetry& symmetry, Sharing& sharing)
      : network_(network), symmetry_(symmetry), sharing_(sharing) {}

  const Way& between(std::uint32_t from, std::uint32_t to);

 private:
  std::uint32_t find(std::uint32_t from, std::uint32_t to);

  const Network& network_;
  const Symmetry& symmetry_;
  Sharing& sharing_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_, byUses_;
  std::vector<Way> ways_;
};

}  // namespace weft::sim
