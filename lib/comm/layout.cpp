// SPDX-License-Identifier: Apache-2.0
#include "comm/layout.h"

#include <algorithm>

#include "engine/pairs.h"
#include "plan/arrivals.h"

namespace weft::comm {
namespace {

// Between hosts a message costs more than a cache miss: pieces are larger there.
constexpr std::size_t kArenaBytesOfPeer = std::size_t{192} << 10;

// What direct algorithms need of each peer, with a clear-to-send and the all-gather of a step.
constexpr std::uint32_t kDense = 4;

// A staging slot of messages between two ranks: smaller where many share what is registered.
std::size_t pairSlotBytes(std::uint32_t ranks) {
  constexpr std::size_t kMost = std::size_t{64} << 10, kLeast = std::size_t{4} << 10;
  constexpr std::size_t kTogether = std::size_t{16} << 20;
  const std::size_t share = kTogether / (std::size_t{ranks} * engine::Pairs::kPairSlots);
  return std::clamp(share / kLeast * kLeast, kLeast, kMost);
}

// A message of a ring that does not fit into an arrival slot.
std::size_t ringBytes(std::uint32_t ranks) {
  constexpr std::size_t kMost = std::size_t{4} << 10, kLeast = 256;
  constexpr std::size_t kTogether = std::size_t{8} << 20;
  const std::size_t share = kTogether / (std::size_t{ranks} * transport::kRingStages);
  return std::clamp(share / kLeast * kLeast, kLeast, kMost);
}

}  // namespace

transport::WindowLayout layoutFor(const plan::Tuning& tuning, bool oneHost) {
  const std::uint32_t ranks = tuning.ranks;
  const std::uint32_t perPeer = plan::arrivalsPerPeer(tuning);
  transport::WindowLayout layout;
  layout.ranks = ranks;
  layout.apart = 1;
  layout.arrivalSlots = ranks * perPeer;
  layout.dense = std::min(perPeer, kDense);
  if (oneHost) {
    layout.ring = transport::kRing;
    layout.ringStages = transport::kRingStages;
    layout.ringBytes = ringBytes(ranks);
  }
  layout.pairArrivalSlots = ranks * (layout.ring + engine::Pairs::kArrivalsPerPeer);
  layout.arenaBytes = kArenaBytes;
  if (!oneHost) layout.arenaBytes += (ranks - 1) * kArenaBytesOfPeer;
  layout.pairBytes = std::size_t{ranks} * engine::Pairs::kPairSlots * pairSlotBytes(ranks);
  return layout;
}

}  // namespace weft::comm
