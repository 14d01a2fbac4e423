// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/ir.h"

namespace weft::plan {

// Where a schedule's messages arrive: every writer has a region of its own in each receiver's
// arrival slots and staging arena, and fills it in the order of its puts. So memory has one writer
// whatever the ranks call: even ranks that disagree on the call never write over each other, and
// what arrives is of one piece.
//
// Pure function of (schedule, rank): sender and receiver compute the same places.
class StagingMap {
 public:
  // A place in the region of `writer`: a number of arrival slots or of Tmp slots, not bytes.
  struct Spot {
    std::uint32_t writer = 0;
    std::uint32_t index = 0;
  };

  StagingMap(const schedule::Schedule& schedule, std::uint32_t rank);

  // The most arrival slots, and Tmp slots, in any region of any rank.
  std::uint32_t arrivalsPerRegion() const { return arrivals_; }
  std::uint32_t slotsPerRegion() const { return slots_; }

  // Does any rank use what several puts brought as one run? Then payloads must not lie in their
  // arrival slots.
  bool runsSpanPuts() const { return spans_; }

  // Own side: the arrival slot of a slot that somebody puts into, and the memory of a Tmp slot.
  // Slots that nobody puts into lie in this rank's own region.
  Spot arrival(schedule::Slot slot) const { return arrivalOf_[indexOf(slot)]; }
  Spot tmp(std::uint32_t slot) const { return tmpOf_[slot]; }
  // Peer's side, in this rank's region there: of the first slot that op number `op` of this rank's
  // program puts into.
  std::uint32_t putArrival(std::size_t op) const { return putArrival_[op]; }
  std::uint32_t putSlot(std::size_t op) const { return putSlot_[op]; }

 private:
  std::uint32_t indexOf(schedule::Slot slot) const;
  void follow(std::uint32_t writer, const schedule::Program& program);
  bool spansPuts(std::uint32_t rank, const schedule::Program& program) const;
  bool isOnePiece(std::uint32_t rank, schedule::Slot first, std::uint32_t chunks) const;

  const schedule::Schedule& schedule_;
  const std::uint32_t rank_;
  std::uint32_t arrivals_ = 0;
  std::uint32_t slots_ = 0;
  std::vector<Spot> arrivalOf_;
  std::vector<Spot> tmpOf_;
  std::vector<std::uint32_t> putArrival_, putSlot_;
  bool spans_ = false;
  // By receiver and Tmp slot: which of all puts brings it, counted from 1; 0 = none.
  std::vector<std::vector<std::uint32_t>> broughtBy_;
  std::uint32_t puts_ = 0;
};

}  // namespace weft::plan
