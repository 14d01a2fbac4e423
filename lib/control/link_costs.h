// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bootstrap/unique_id.h"

namespace weft::control {

// Of one rank's end of a link: its connection, its bell, its thread's stop signal.
inline constexpr std::size_t kClientFds = 3;
// Of a server or a relay, but for connections: its thread's stop signal, and what it waits on.
inline constexpr std::size_t kServiceFds = 2;
// Where a server is come to, as long as there are relays whose ranks may have to: and what waits there.
inline constexpr std::size_t kDoorFds = bootstrap::kMaxIdAddresses + 1;

// What a link has of a process: descriptors at most, as some have one door and some two.
struct LinkCosts {
  std::size_t threads = 0, descriptors = 0;
};

// `hosts`: by rank of those on the link, a number for each host, which begin with 0 at rank 0; once all
// are on it. Ranks are a process each.
inline LinkCosts linkCostsOf(std::uint32_t rank, std::span<const std::uint32_t> hosts) {
  const auto on = [&](std::uint32_t host) {
    return static_cast<std::size_t>(std::ranges::count(hosts, host));
  };
  LinkCosts costs{1, kClientFds};
  if (rank == 0) {
    const std::uint32_t last = *std::ranges::max_element(hosts);
    bool relays = false;
    for (std::uint32_t host = 1; host <= last; ++host) relays = relays || on(host) > 1;
    costs.threads += 1;
    costs.descriptors += kServiceFds + on(hosts[0]) + last + (relays ? kDoorFds : 0);
  }
  const bool isFirst = std::ranges::find(hosts, hosts[rank]) - hosts.begin() == rank;
  if (isFirst && rank != 0 && on(hosts[rank]) > 1) {
    costs.threads += 1;
    costs.descriptors += kServiceFds + 1 + on(hosts[rank]);
  }
  return costs;
}

}  // namespace weft::control
