// SPDX-License-Identifier: Apache-2.0
#include "engine/footprint.h"

#include <algorithm>

namespace weft::engine {

using transport::ArrivalSlot;
using Kind = plan::BoundOp::Kind;

namespace {

bool raisesArrival(Kind kind) {
  return kind == Kind::Put || kind == Kind::PutInline || kind == Kind::PutDirect ||
         kind == Kind::Raise || kind == Kind::Signal;
}

}  // namespace

// A piece of a window that lies there `times` times, one for each lane.
struct Footprint::Piece {
  std::size_t from = 0;
  std::size_t bytes = 0;
  std::size_t pitch = 0;
  std::uint32_t times = 1;
};

// Joins pieces whose pages touch, which those of small regions do: one call for many.
class Footprint::Neighbours {
 public:
  explicit Neighbours(transport::Transport& transport) : transport_(transport) {}

  Status add(std::uint32_t window, const Piece& piece) {
    if (piece.bytes == 0) return {};
    const std::size_t end = transport::roundUp(joined_.from + joined_.bytes, transport::kPage);
    if (joined_.bytes != 0 && window == window_ && piece.from <= end &&
        piece.from >= joined_.from) {
      joined_.bytes = std::max(joined_.bytes, piece.from + piece.bytes - joined_.from);
      return {};
    }
    WEFT_TRY(finish());
    window_ = window;
    joined_ = piece;
    return {};
  }
  Status finish() {
    for (std::uint32_t k = 0; joined_.bytes != 0 && k < joined_.times; ++k)
      WEFT_TRY(transport_.commit(window_, joined_.from + k * joined_.pitch, joined_.bytes));
    joined_ = {};
    return {};
  }

 private:
  transport::Transport& transport_;
  std::uint32_t window_ = 0;
  Piece joined_;
};

Footprint::Footprint(transport::Transport& transport, std::uint32_t rank)
    : transport_(transport),
      layout_(transport.layout()),
      rank_(rank),
      here_(layout_.ranks),
      there_(layout_.ranks) {}

std::size_t Footprint::bytes() const { return 2 * layout_.ranks * sizeof(Reach); }

Status Footprint::coverNew(const plan::Plan& plan) {
  Regions here = here_, there = there_;
  measure(plan, &here, &there);
  WEFT_TRY(commit(here, there));
  here_ = std::move(here);
  there_ = std::move(there);
  plan.hasMemory = true;
  return {};
}

void Footprint::measure(const plan::Plan& plan, Regions* here, Regions* there) const {
  const std::size_t region = layout_.stagingRegion();
  for (const plan::BoundOp& op : plan.ops) {
    measurePlace(plan, op.src, op.max, here);
    for (std::uint32_t k = 0; k < op.operands; ++k)
      measurePlace(plan, plan.operands[op.first + k], op.max, here);
    if (op.kind == Kind::Wait) {
      measureArrival(plan, op, &(*here)[op.peer]);
    } else if (op.kind == Kind::Publish) {
      Reach& mine = (*here)[rank_];
      if (plan.inRing)
        measureStages(plan, &mine);
      else
        mine.published = std::max(mine.published, op.dst.offset + op.max);
    } else if (!raisesArrival(op.kind)) {
      measurePlace(plan, op.dst, op.max, here);
    } else {
      Reach& reach = (*there)[op.peer];
      measureArrival(plan, op, &reach);
      if (op.kind == Kind::Put && plan.inRing)
        measureStages(plan, &reach);
      else if (op.kind == Kind::Put)
        reach.arena = std::max(reach.arena, op.dst.offset + op.max - rank_ * region);
    }
  }
}

void Footprint::measureArrival(const plan::Plan& plan, const plan::BoundOp& op,
                               Reach* reach) const {
  const transport::ArrivalRegions regions = layout_.regions();
  if (plan.inRing)
    reach->ring = layout_.ring;
  else if (op.arrival >= regions.ranks * regions.dense && regions.perPeer > regions.dense)
    reach->arrivals = std::max(reach->arrivals, regions.indexOf(op.arrival) + 1);
}

void Footprint::measureStages(const plan::Plan& plan, Reach* reach) const {
  const transport::RingStages& ring = layout_.ringStages;
  const transport::Stages* const stages = ring.stagesOf(plan.stageBytes);
  if (stages == nullptr) return;
  std::uint64_t& bytes = stages == &ring.longer ? reach->longer : reach->shorter;
  bytes = std::max(bytes, plan.depth * plan.stageBytes);
}

void Footprint::measurePlace(const plan::Plan& plan, const plan::Place& place, std::uint64_t bytes,
                             Regions* here) const {
  const std::size_t region = layout_.stagingRegion();
  if (place.base == plan::Base::Ring)
    measureStages(plan, &(*here)[place.offset / layout_.ringStages.bytes]);
  if (place.base != plan::Base::Arena || region == 0 || bytes == 0) return;
  Reach& reach = (*here)[place.offset / region];
  reach.arena = std::max(reach.arena, place.offset % region + bytes);
}

// Region by region: of this rank's window that of each writer, of each peer's window this rank's.
template <class Part>
Status Footprint::commitEach(const Regions& here, const Regions& there, Part&& part) {
  Neighbours neighbours(transport_);
  for (std::uint32_t r = 0; r < layout_.ranks; ++r)
    WEFT_TRY(neighbours.add(rank_, part(r, here_[r], here[r])));
  for (std::uint32_t r = 0; r < layout_.ranks; ++r)
    WEFT_TRY(neighbours.add(r, part(rank_, there_[r], there[r])));
  return neighbours.finish();
}

Status Footprint::commit(const Regions& here, const Regions& there) {
  const auto ofArena = [&](std::uint32_t writer, const Reach& had, const Reach& needs) -> Piece {
    if (needs.arena <= had.arena) return {};
    return {layout_.arena() + writer * layout_.stagingRegion(), needs.arena, layout_.arenaBytes,
            transport::kMaxLanes};
  };
  const auto ofArrivals = [&](std::uint32_t writer, const Reach& had, const Reach& needs) -> Piece {
    if (needs.arrivals <= had.arrivals) return {};
    const std::size_t first = layout_.regions().slotOf(writer, layout_.dense);
    return {layout_.arrivals() + first * sizeof(ArrivalSlot),
            (needs.arrivals - layout_.dense) * sizeof(ArrivalSlot), layout_.laneOfArrivals(),
            transport::kMaxLanes};
  };
  const auto ofRing = [&](std::uint32_t writer, const Reach& had, const Reach& needs) -> Piece {
    if (needs.ring <= had.ring) return {};
    const std::size_t region = layout_.pairArrivalSlots / layout_.ranks * sizeof(ArrivalSlot);
    return {layout_.pairArrivals() + writer * region, needs.ring * sizeof(ArrivalSlot)};
  };
  const transport::RingStages& ring = layout_.ringStages;
  const auto ofStages = [&](std::uint64_t Reach::*bytes, const transport::Stages& stages) {
    const std::size_t first = layout_.ringArena() + ring.beginOf(stages);
    return [=, &ring](std::uint32_t writer, const Reach& had, const Reach& needs) -> Piece {
      if (needs.*bytes <= had.*bytes) return {};
      return {first + writer * ring.bytes, needs.*bytes};
    };
  };
  const auto ofPublished = [&](std::uint32_t, const Reach& had, const Reach& needs) -> Piece {
    if (needs.published <= had.published) return {};
    return {layout_.published(), needs.published, layout_.publishedBytes(), transport::kMaxLanes};
  };
  WEFT_TRY(commitEach(here, there, ofArena));
  WEFT_TRY(commitEach(here, there, ofPublished));
  WEFT_TRY(commitEach(here, there, ofArrivals));
  WEFT_TRY(commitEach(here, there, ofRing));
  WEFT_TRY(commitEach(here, there, ofStages(&Reach::shorter, ring.shorter)));
  return commitEach(here, there, ofStages(&Reach::longer, ring.longer));
}

}  // namespace weft::engine
