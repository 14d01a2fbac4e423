// SPDX-License-Identifier: Apache-2.0
#include "plan/staging_map.h"

#include <algorithm>

namespace weft::plan {

StagingMap::StagingMap(const schedule::Schedule& schedule, std::uint32_t rank)
    : schedule_(schedule),
      rank_(rank),
      arrivalOf_(schedule.tmpChunks + schedule.outChunks + schedule.signals),
      tmpOf_(schedule.tmpChunks),
      broughtBy_(schedule.ranks, std::vector<std::uint32_t>(schedule.tmpChunks, 0)) {
  std::vector<schedule::Program> programs;
  for (std::uint32_t r = 0; r < schedule.ranks; ++r) {
    programs.push_back(schedule.program(r));
    follow(r, programs.back());
  }
  for (std::uint32_t r = 0; r < schedule.ranks; ++r) {
    const auto own = std::count(broughtBy_[r].begin(), broughtBy_[r].end(), 0u);
    slots_ = std::max(slots_, static_cast<std::uint32_t>(own));
    spans_ = spans_ || spansPuts(r, programs[r]);
  }
  std::uint32_t next = 0;
  for (std::uint32_t slot = 0; slot < schedule.tmpChunks; ++slot)
    if (broughtBy_[rank][slot] == 0) tmpOf_[slot] = {rank_, next++};
}

bool StagingMap::isOnePiece(std::uint32_t rank, schedule::Slot first, std::uint32_t chunks) const {
  for (std::uint32_t j = 1; first.buf == schedule::Buf::Tmp && j < chunks; ++j)
    if (broughtBy_[rank][first.index + j] != broughtBy_[rank][first.index]) return false;
  return true;
}

bool StagingMap::spansPuts(std::uint32_t rank, const schedule::Program& program) const {
  for (const schedule::Op& op : program.ops) {
    if (op.kind == schedule::OpKind::Wait || op.isSignal()) continue;
    if (op.kind != schedule::OpKind::Put && !isOnePiece(rank, op.dst, op.chunks)) return true;
    if (op.kind != schedule::OpKind::Reduce && !isOnePiece(rank, op.src, op.chunks)) return true;
    for (std::uint32_t k = 0; k < op.operands; ++k)
      if (!isOnePiece(rank, program.operands[op.firstOperand + k], op.chunks)) return true;
  }
  return false;
}

// Slots that can have an arrival: Tmp, then Out, then signals.
std::uint32_t StagingMap::indexOf(schedule::Slot slot) const {
  switch (slot.buf) {
    case schedule::Buf::Out:
      return schedule_.tmpChunks + slot.index;
    case schedule::Buf::Signal:
      return schedule_.tmpChunks + schedule_.outChunks + slot.index;
    default:
      return slot.index;
  }
}

// Gives each put of `writer` the next places in its region at the receiver.
void StagingMap::follow(std::uint32_t writer, const schedule::Program& program) {
  std::vector<std::uint32_t> arrivals(schedule_.ranks, 0), slots(schedule_.ranks, 0);
  for (const schedule::Op& op : program.ops) {
    if (writer == rank_) {
      putArrival_.push_back(op.kind == schedule::OpKind::Put ? arrivals[op.peer] : 0);
      putSlot_.push_back(op.kind == schedule::OpKind::Put ? slots[op.peer] : 0);
    }
    if (op.kind != schedule::OpKind::Put) continue;
    const bool inTmp = op.dst.buf == schedule::Buf::Tmp;
    ++puts_;
    for (std::uint32_t j = 0; inTmp && j < op.chunks; ++j) {
      broughtBy_[op.peer][op.dst.index + j] = puts_;
      if (op.peer == rank_) tmpOf_[op.dst.index + j] = {writer, slots[op.peer] + j};
    }
    for (std::uint32_t j = 0; op.peer == rank_ && j < std::max(1u, op.chunks); ++j)
      arrivalOf_[indexOf(op.dst + j)] = {writer, arrivals[op.peer] + j};
    arrivals[op.peer] += std::max(1u, op.chunks);
    slots[op.peer] += inTmp ? op.chunks : 0;
  }
  arrivals_ = std::max(arrivals_, *std::max_element(arrivals.begin(), arrivals.end()));
  slots_ = std::max(slots_, *std::max_element(slots.begin(), slots.end()));
}

}  // namespace weft::plan
