// SPDX-License-Identifier: Apache-2.0
#include "comm/layout.h"

#include <algorithm>
#include <cmath>

#include "engine/pairs.h"
#include "plan/arrivals.h"
#include "transports/wire/immediate_data.h"

namespace weft::comm {
namespace {

// Between hosts a message costs more than a cache miss: pieces are larger there, and where few peers
// are sent to, but long messages.
constexpr std::size_t kArenaBytesOfPeer = std::size_t{192} << 10;

// Who forwards for others gets much over one link: address space, as all of it.
constexpr std::size_t kArenaBytesOfLink = std::size_t{4} << 20;

// What direct algorithms need of each peer, with a clear-to-send and the all-gather of a step.
constexpr std::uint32_t kDense = 4;

// A staging slot of messages between two ranks: smaller where many share what is registered.
std::size_t pairSlotBytes(std::uint32_t ranks) {
  constexpr std::size_t kMost = std::size_t{64} << 10, kLeast = std::size_t{4} << 10;
  constexpr std::size_t kTogether = std::size_t{16} << 20;
  const std::size_t share = kTogether / (std::size_t{ranks} * engine::Pairs::kPairSlots);
  return std::clamp(share / kLeast * kLeast, kLeast, kMost);
}

// What is staged of messages in rings, of all peers, for each of the two lengths.
constexpr std::size_t kRingsTogether = std::size_t{8} << 20;

transport::Stages stagesOf(std::uint32_t ranks, std::uint32_t count, std::size_t most) {
  constexpr std::size_t kLeast = 256;
  const std::size_t share = kRingsTogether / (std::size_t{ranks} * count);
  return {count, std::clamp(share / kLeast * kLeast, kLeast, most)};
}

transport::RingStages ringStages(std::uint32_t ranks) {
  const bool deep = ranks * transport::kRing * transport::kMostRingBytes <= kRingsTogether;
  const transport::Stages shorter =
      stagesOf(ranks, deep ? transport::kRing : transport::kRingStages, transport::kMostRingBytes);
  const transport::Stages longer =
      stagesOf(ranks, transport::kRingStages, transport::kMostLongRingBytes);
  return {shorter, longer.bytes > shorter.bytes ? longer : transport::Stages{}};
}

// Ranks that share cores go as far ahead as there is room, and with longer messages; one with a core
// of its own keeps them in its cache.
transport::RingStages stagesInUse(const transport::WindowLayout& layout, std::uint32_t cores) {
  transport::RingStages stages = layout.ringStages;
  if (cores < layout.ranks) return stages;
  stages.shorter.count = std::min(stages.shorter.count, transport::kRingStages);
  stages.longer = {};
  return stages;
}

Status checkNumbers(std::uint32_t ranks, std::uint64_t slotsOfPeer, bool oneHost) {
  const std::uint32_t bits = oneHost ? 32 : wire::ImmediateData::kValueBits;
  const std::uint64_t slots = ranks * slotsOfPeer;
  if (slots < std::uint64_t{1} << bits) return {};
  return Status::error(Code::InvalidUsage, "a communicator of ", ranks, " ranks needs ", slots,
                       " arrival slots in each, which ", oneHost ? "" : "wires ", "number with ",
                       bits, " bits; fix: fewer ranks in one communicator");
}

}  // namespace

std::int64_t stagingKbInHost(const tune::Machine& machine) {
  constexpr double kMost = kArenaBytes, kLeast = kMost / 8;
  return std::llround(std::clamp(machine.cacheBytes / 2 / transport::kMaxLanes, kLeast, kMost)) >>
         10;
}

Status layoutFor(const plan::Tuning& tuning, bool oneHost, transport::WindowLayout* layout) {
  const std::uint32_t ranks = tuning.ranks;
  const std::uint32_t perPeer = plan::arrivalsPerPeer(tuning);
  const std::uint32_t ring = oneHost ? transport::kRing : 0;
  const std::uint32_t ofPairs = ring + engine::Pairs::kArrivalsPerPeer;
  *layout = {.ranks = ranks,
             .arrivalSlots = ranks * perPeer,
             .dense = std::min(perPeer, kDense),
             .pairArrivalSlots = ranks * ofPairs,
             .ring = ring,
             .apart = 1,
             .arenaBytes = kArenaBytes,
             .pairBytes = std::size_t{ranks} * engine::Pairs::kPairSlots * pairSlotBytes(ranks),
             .ringStages = oneHost ? ringStages(ranks) : transport::RingStages{},
             .publishes = oneHost && ranks > 1};
  if (!oneHost || plan::isCrowdedHost(tuning))
    layout->arenaBytes += (ranks - 1) * kArenaBytesOfPeer;
  if (tuning.links != nullptr)
    layout->arenaBytes = std::max(layout->arenaBytes, ranks * kArenaBytesOfLink);
  return checkNumbers(ranks, std::uint64_t{transport::kMaxLanes} * perPeer + ofPairs, oneHost);
}

plan::BindTarget targetFor(const plan::Tuning& tuning, const transport::WindowLayout& layout) {
  const plan::CostParameters& costs = tuning.costs;
  return {.ranks = tuning.ranks,
          .arrivalSlots = layout.arrivalSlots,
          .dense = layout.dense,
          .pairArrivalSlots = layout.pairArrivalSlots,
          .ring = layout.ring,
          .ringStages = stagesInUse(layout, costs.cores),
          .budget = {.arenaBytes = layout.arenaBytes,
                     .stagingBytes = costs.stagingBytes,
                     .longStagingBytes = costs.longStagingBytes},
          .streamMin = plan::streamMin(tuning.ranks, costs)};
}

}  // namespace weft::comm
