// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/arrivals.h"
#include "plan/bind.h"
#include "plan/tuning.h"
#include "schedule/nodes.h"

namespace weft::plan {

// A machine as lib/tune measures them: 2 MiB of second-level cache, fast cores, and a last level
// that is little faster than memory.
inline tune::Machine sampleMachine() {
  return {.cacheBytes = 2 << 20,
          .sharers = 2,
          .exchangeNs = 130,
          .messageNs = 20,
          .handOverNs = 680,
          .foldNear = 68,
          .cmaCallNs = 750,
          .load = {{90, 90, 70, 40, 35}},
          .copy = {{42, 42, 30, 14, 14}},
          .put = {{14, 14, 14, 12, 12}},
          .take = {{9, 9, 9, 9, 9}},
          .stream = {{10, 11, 12, 15, 17}},
          .cmaPut = {{12, 12, 11, 10, 4}},
          .cmaTake = {{9, 9, 9, 8, 4}}};
}

inline CostParameters sampleCosts(std::uint32_t cores = 2) {
  return {.machine = sampleMachine(),
          .cores = cores,
          .arenaBytes = 1 << 20,
          .stagingBytes = 256 << 10,
          .between = {}};
}

constexpr std::uint64_t kArenaOfPeer = 192 << 10;

// All ranks on one host, a core for each.
inline Tuning oneHost(std::uint32_t ranks) {
  Tuning t;
  t.ranks = ranks;
  t.nodes = schedule::Nodes::even(1, ranks);
  t.direct = t.shares = true;
  t.costs = sampleCosts(ranks);
  if (isCrowdedHost(t)) t.costs.arenaBytes += (ranks - 1) * kArenaOfPeer;
  return t;
}

// As communicators are made between hosts whose links no file describes.
inline Tuning hosts(std::uint32_t ranks, std::uint32_t localRanks) {
  Tuning t;
  t.ranks = ranks;
  t.nodes = schedule::Nodes::even(localRanks, ranks / localRanks);
  t.costs = sampleCosts(ranks);
  t.costs.arenaBytes += (ranks - 1) * kArenaOfPeer;
  t.costs.stagingBytes = t.costs.arenaBytes;
  t.costs.between = Between{t.nodes};
  return t;
}

inline BindTarget targetOf(const Tuning& t, std::uint32_t rank = 0) {
  return {.rank = rank,
          .ranks = t.ranks,
          .arrivalSlots = t.ranks * arrivalsPerPeer(t),
          .budget = {t.costs.arenaBytes, t.costs.stagingBytes}};
}

// A call to plan there.
inline Call callOf(schedule::Collective collective, std::uint64_t count) {
  Call call;
  call.collective = collective;
  call.type = reduce::DType::F32;
  call.count = count;
  return call;
}

}  // namespace weft::plan
