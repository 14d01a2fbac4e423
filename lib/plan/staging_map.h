// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/ir.h"

namespace weft::plan {

// Where a schedule's messages arrive: every writer has a region of its own in each receiver's
// arrival slots and staging arena, in which what it puts lies in the order of the slots that it
// puts into; what it publishes lies so in memory of its own. So memory has one writer whatever the
// ranks call: even ranks that disagree on the call never write over each other, and what arrives is
// of one piece.
//
// Pure function of (schedule, rank): sender and receiver compute the same places, each from its own
// program alone.
class StagingMap {
 public:
  // A place in the region of `writer`: a number of arrival slots or of Tmp slots, not bytes.
  struct Spot {
    std::uint32_t writer = 0;
    std::uint32_t index = 0;
  };

  // `program` is that of `rank`.
  StagingMap(const schedule::Schedule& schedule, std::uint32_t rank,
             const schedule::Program& program);

  // The most arrival slots, and Tmp slots, in any region of any rank: of the typical ranks.
  std::uint32_t arrivalsPerRegion() const { return most_.arrivals; }
  std::uint32_t slotsPerRegion() const { return most_.slots; }
  // Is this rank like one of those?
  bool isTypical() const { return own_.arrivals <= most_.arrivals && own_.slots <= most_.slots; }

  // Own side: the arrival slot of a slot that somebody puts into, and the memory of a Tmp slot.
  // Slots that only this rank writes to lie in its own region.
  Spot arrival(schedule::Slot slot) const { return arrivalOf_[indexOf(slot)]; }
  Spot tmp(std::uint32_t slot) const { return tmpOf_[slot]; }
  // Peer's side, in this rank's region there, or among what it publishes: of the first slot that op
  // number `op` of this rank's program puts into.
  std::uint32_t putArrival(std::size_t op) const { return putOf_[op].arrivals; }
  std::uint32_t putSlot(std::size_t op) const { return putOf_[op].slots; }

  // So many of a region.
  struct Room {
    std::uint32_t arrivals = 0, slots = 0;
  };
  // The most that this program fills of any region: at its peers, and of its rank's own.
  static Room mostOf(const schedule::Schedule& schedule, const schedule::Program& program);

 private:
  std::uint32_t indexOf(schedule::Slot slot) const;
  void receive(const schedule::Op& wait, Room at);

  const schedule::Schedule& schedule_;
  Room most_, own_;
  std::vector<Spot> arrivalOf_;
  std::vector<Spot> tmpOf_;
  std::vector<Room> putOf_;  // by op
};

}  // namespace weft::plan
