// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plan/costs.h"
#include "tune/machine.h"

// What the model of plan/model.h and the simulator price memory by.
namespace weft::plan {

// What a byte costs a core where so many of them are in use, in nanoseconds.
struct MemoryCosts {
  MemoryCosts() = default;
  // `across`: how many of a rank's peers are on another core.
  MemoryCosts(const tune::Machine& machine, double footprint, double across) {
    const double copy = machine.copy.nsPerByte(footprint);
    load = machine.load.nsPerByte(footprint);
    store = std::max(0.0, copy - load);
    const double far = std::max(0.0, machine.take.nsPerByte(footprint) - store - load);
    take = load + across * far;
    const double lines = std::max(0.0, machine.put.nsPerByte(footprint) - copy);
    put = store + across * lines;
    publish = store + (across > 0 ? lines : 0);
    streamed = machine.stream.nsPerByte(footprint);
    const auto further = [&](const tune::Curve& there, const tune::Curve& here) {
      return there.near() > 0
                 ? std::max(0.0, there.nsPerByte(footprint) - here.nsPerByte(footprint))
                 : 0;
    };
    furtherTake = further(machine.farTake, machine.take);
    furtherPut = further(machine.farPut, machine.put);
  }

  // A store past the caches beside loads that take so long. Such stores are what limits a copy, wherever
  // it loads from: only what a sum loads besides takes time of its own.
  double storePast(double loadNs) const { return std::max(0.0, streamed - std::min(load, loadNs)); }

  double load = 0, store = 0;              // of memory that this core has written, or read
  double take = 0, put = 0;                // of memory that a peer has written, or read
  double publish = 0;                      // that all have read: each line is another core's, too
  double streamed = 0;                     // a copy that stores past the caches
  double furtherTake = 0, furtherPut = 0;  // more, where the peer is of another NUMA node
};

// Ranks of a core.
inline double shareOf(std::uint32_t ranks, const CostParameters& costs) {
  return std::ceil(static_cast<double>(ranks) / std::max(1u, costs.cores));
}

// How many of a rank's peers are on another core than it.
inline double acrossOf(std::uint32_t ranks, const CostParameters& costs) {
  return ranks > 1 ? (ranks - shareOf(ranks, costs)) / (ranks - 1) : 0;
}

// Two cores have been measured, and more of them, if the ranks use so many, may share the last
// cache.
inline double crowdOf(std::uint32_t ranks, const CostParameters& costs) {
  const double used = std::min<double>(costs.cores, double(ranks) * costs.team.threads);
  return std::max(1.0, std::min<double>(used, costs.machine.sharers) / 2);
}

// The footprint at which the two met what these cores meet.
inline double crowded(double footprint, std::uint32_t ranks, const CostParameters& costs) {
  const double own = costs.machine.cacheBytes;
  return footprint <= own ? footprint : std::max(own, footprint * crowdOf(ranks, costs));
}

}  // namespace weft::plan
