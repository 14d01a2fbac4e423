// SPDX-License-Identifier: Apache-2.0
#include "plan/staging_map.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace weft::plan {
namespace {

// Slots that can have an arrival: Tmp, then Out, then signals.
std::uint32_t arrivalIndex(const schedule::Schedule& schedule, schedule::Slot slot) {
  switch (slot.buf) {
    case schedule::Buf::Out:
      return schedule.tmpChunks + slot.index;
    case schedule::Buf::Signal:
      return schedule.tmpChunks + schedule.outChunks + slot.index;
    default:
      return slot.index;
  }
}

StagingMap::Room larger(StagingMap::Room a, StagingMap::Room b) {
  return {std::max(a.arrivals, b.arrivals), std::max(a.slots, b.slots)};
}

// A rank's messages of one kind, peer by peer, those of each in the order of the slots put into.
std::vector<std::uint32_t> ordered(const schedule::Schedule& schedule,
                                   const schedule::Program& program, schedule::OpKind kind) {
  std::vector<std::uint32_t> ends(schedule.ranks + 1, 0);  // at first: where the next one begins
  for (const schedule::Op& op : program.ops)
    if (op.kind == kind) ++ends[op.peer + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<std::uint32_t> ops(ends.back());
  for (std::uint32_t i = 0; i < program.ops.size(); ++i)
    if (program.ops[i].kind == kind) ops[ends[program.ops[i].peer]++] = i;
  const auto keyOf = [&](std::uint32_t op) {
    return std::pair(arrivalIndex(schedule, program.ops[op].dst), op);
  };
  auto begin = ops.begin();
  for (std::uint32_t peer = 0; peer < schedule.ranks; ++peer) {
    const auto end = ops.begin() + ends[peer];
    std::ranges::sort(begin, end, {}, keyOf);
    begin = end;
  }
  return ops;
}

void fill(const schedule::Op& op, StagingMap::Room& room) {
  room.arrivals += std::max(1u, op.chunks);
  if (op.dst.buf == schedule::Buf::Tmp) room.slots += op.chunks;
}

// Calls visit(op's number, where its first slot lies in its region).
template <class Visit>
void place(const schedule::Schedule& schedule, const schedule::Program& program,
           schedule::OpKind kind, Visit&& visit) {
  StagingMap::Room next;
  std::uint32_t peer = schedule.ranks;
  for (const std::uint32_t number : ordered(schedule, program, kind)) {
    const schedule::Op& op = program.ops[number];
    if (op.peer != peer) next = {};
    peer = op.peer;
    visit(number, next);
    fill(op, next);
  }
}

// The Tmp slots that only their own rank writes to.
std::vector<bool> ownSlots(const schedule::Schedule& schedule, const schedule::Program& program) {
  std::vector<bool> own(schedule.tmpChunks, false);
  const auto set = [&](const schedule::Op& op, bool isOwn) {
    for (std::uint32_t j = 0; op.dst.buf == schedule::Buf::Tmp && j < op.chunks; ++j)
      own[op.dst.index + j] = isOwn;
  };
  for (const schedule::Op& op : program.ops)
    if (!op.hasPeer()) set(op, true);
  for (const schedule::Op& op : program.ops)
    if (op.kind == schedule::OpKind::Wait) set(op, false);
  return own;
}

// `own`: its ownSlots().
StagingMap::Room roomOf(const schedule::Schedule& schedule, const schedule::Program& program,
                        const std::vector<bool>& own) {
  StagingMap::Room most;
  if (!schedule.shared) most.slots = static_cast<std::uint32_t>(std::ranges::count(own, true));
  std::vector<StagingMap::Room> at(schedule.ranks);
  for (const schedule::Op& op : program.ops) {
    if (op.kind != schedule::OpKind::Put) continue;
    fill(op, at[op.peer]);
    most = larger(most, at[op.peer]);
  }
  return most;
}

}  // namespace

StagingMap::Room StagingMap::mostOf(const schedule::Schedule& schedule,
                                    const schedule::Program& program) {
  return roomOf(schedule, program, ownSlots(schedule, program));
}

StagingMap::StagingMap(const schedule::Schedule& schedule, std::uint32_t rank,
                       const schedule::Program& program)
    : schedule_(schedule),
      arrivalOf_(schedule.tmpChunks + schedule.outChunks + schedule.signals),
      tmpOf_(schedule.tmpChunks),
      putOf_(program.ops.size()) {
  const std::vector<bool> own = ownSlots(schedule, program);
  own_ = roomOf(schedule, program, own);
  for (const std::uint32_t r : std::set(schedule.typical.begin(), schedule.typical.end()))
    most_ = larger(most_, r == rank ? own_ : mostOf(schedule, schedule.program(r)));
  place(schedule, program, schedule::OpKind::Put,
        [&](std::uint32_t op, Room at) { putOf_[op] = at; });
  place(schedule, program, schedule::OpKind::Wait,
        [&](std::uint32_t op, Room at) { receive(program.ops[op], at); });
  std::uint32_t next = 0;
  for (std::uint32_t slot = 0; slot < schedule.tmpChunks; ++slot)
    if (own[slot]) tmpOf_[slot] = {rank, next++};
}

std::uint32_t StagingMap::indexOf(schedule::Slot slot) const {
  return arrivalIndex(schedule_, slot);
}

void StagingMap::receive(const schedule::Op& wait, Room at) {
  const bool inTmp = wait.dst.buf == schedule::Buf::Tmp;
  for (std::uint32_t j = 0; j < std::max(1u, wait.chunks); ++j)
    arrivalOf_[indexOf(wait.dst + j)] = {wait.peer, at.arrivals + j};
  for (std::uint32_t j = 0; inTmp && j < wait.chunks; ++j)
    tmpOf_[wait.dst.index + j] = {wait.peer, at.slots + j};
}

}  // namespace weft::plan
