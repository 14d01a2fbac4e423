// SPDX-License-Identifier: Apache-2.0
#include "plan/op_prices.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "plan/plan.h"
#include "plan/staging_map.h"
#include "transports/window.h"

namespace weft::plan {
namespace {

// CMA copies of shared buffers are made in tiles.
double tilesOf(double bytes) { return std::ceil(bytes / kTileBytes); }

}  // namespace

OpPrices::OpPrices(const schedule::Schedule& schedule, const Call& call,
                   const CostParameters& costs, Reach reach)
    : schedule_(schedule),
      costs_(costs),
      reach_(reach),
      machine_(costs.machine),
      layout_(schedule, call,
              {regionBytes(), costs.stagingBytes, slotsPerRegion(), costs.longStagingBytes}) {
  share_ = shareOf(schedule.ranks, costs);
  across_ = acrossOf(schedule.ranks, costs);
  footprint_ = crowded(share_ * static_cast<double>(layout_.bufferBytes()), schedule.ranks, costs);
  user_ = MemoryCosts(machine_, footprint_, across_);
  tmp_ = MemoryCosts(machine_, crowded(share_ * stagingBytes(), schedule.ranks, costs), across_);
  near_ = MemoryCosts(machine_, 0, across_);
  streams_ = layout_.bufferBytes() >= streamMin(schedule.ranks, costs);
  fits_ = slotsPerRegion() * layout_.stride() <= regionBytes();
}

const schedule::Program& OpPrices::program(std::uint32_t rank) {
  const auto [known, isNew] = programs_.try_emplace(rank);
  if (isNew) known->second = schedule_.program(rank);
  return known->second;
}

// Staged bytes are read where they lie near, and published ones where they lie.
FarBytes OpPrices::farBytes(std::uint32_t rank) {
  FarBytes far;
  const schedule::Program& all = program(rank);
  const auto read = [&](schedule::Slot slot, double bytes) {
    if (slot.owner != schedule::kMine && costs_.isFar(rank, slot.owner)) far.read += bytes;
  };
  for (const schedule::Op& op : all.ops) {
    const double bytes = this->bytes(op);
    if (op.hasPeer() && costs_.isFar(rank, op.peer)) {
      const bool puts = op.kind == schedule::OpKind::Put, published = isPublished(op);
      if (puts && !published) far.written += bytes;
      if (!puts && published) far.read += bytes;
    }
    if (op.kind == schedule::OpKind::Copy) read(op.src, bytes);
    for (std::uint32_t k = 0; k < op.operands; ++k) read(all.operands[op.firstOperand + k], bytes);
  }
  return far;
}

const schedule::Program& OpPrices::look(std::uint32_t rank) {
  const schedule::Program& program = this->program(rank);
  rank_ = rank;
  farWrites_.clear();
  if (costs_.memoryNodes.empty()) return program;
  farWrites_.resize(schedule_.tmpChunks, false);
  for (const schedule::Op& op : program.ops)
    for (std::uint32_t j = 0; op.kind == schedule::OpKind::Wait && j < op.chunks; ++j)
      if (op.dst.buf == schedule::Buf::Tmp)
        farWrites_[op.dst.index + j] = costs_.isFar(rank, op.peer);
  return program;
}

double OpPrices::ns(const schedule::Op& op, const schedule::Program& program) const {
  switch (op.kind) {
    case schedule::OpKind::Put:
      return putNs(op, program);
    case schedule::OpKind::Reduce:
      return reduceNs(op, program);
    case schedule::OpKind::Copy:
      return moveNs(loadNs(op.src, bytes(op)), op.dst, bytes(op));
    case schedule::OpKind::Wait:
      return (isPublished(op) ? machine_.exchangeNs * across_ : 0) + receiptsNs(op);
    default:
      return 0;  // a Finish goes along with its sum
  }
}

double OpPrices::receiptsNs(const schedule::Op& op) const {
  if (costs_.mediumTo(rank_, op.peer) != Medium::Memory) return 0;
  return costs_.receiptNs() * across_ * segments() * messages(op);
}

double OpPrices::kernelNs(const schedule::Op& op, const schedule::Program& program) const {
  const bool isDirect = op.kind == schedule::OpKind::Put && op.dst.buf == schedule::Buf::Out;
  const bool byKernel = isDirect && !schedule_.shared && !costs_.oneProcess && !op.isSignal();
  return byKernel ? ns(op, program) : 0;
}

// As engine/team_work.h shares it.
double OpPrices::byTeamNs(double ns) const {
  const TeamCosts& team = costs_.team;
  const double worth = ns / segments() / (kWorthSharing * team.shareNs);
  if (team.threads < 2 || !(worth >= 2)) return ns;
  return ns / std::floor(std::min<double>(worth, team.threads)) + segments() * team.shareNs;
}

// Does it only tell of what a put before it has published?
bool OpPrices::isRaise(const schedule::Op& op, const schedule::Program& program) const {
  return isPublished(op) && program.putsAgain(op);
}

// A put, or the wait for it.
bool OpPrices::isPublished(const schedule::Op& op) const {
  return schedule_.published && op.hasPeer() && op.dst.buf == schedule::Buf::Tmp && isFetched(op);
}

// Does it not travel with its flag, so that it is fetched after that?
bool OpPrices::isFetched(const schedule::Op& op) const {
  return bytes(op) > static_cast<double>(transport::kInlineBytes);
}

double OpPrices::putNs(const schedule::Op& op, const schedule::Program& program) const {
  if (costs_.mediumTo(rank_, op.peer) != Medium::Memory) return 0;  // a link does it
  const double bytes = this->bytes(op);
  if (op.isSignal()) return machine_.messageNs;
  const double flags = machine_.messageNs * static_cast<double>(layout_.segments());
  // What was just made is stored once more, from the nearest cache; the flag waits for the lines.
  if (schedule_.shared && reach_ == Reach::Cma)
    return flags + cmaNs(machine_.cmaPut, bytes, tilesOf(bytes)) -
           bytes * (user_.load - near_.load);
  if (schedule_.shared)
    return flags + machine_.exchangeNs * across_ +
           bytes * (streams_ ? user_.streamed : near_.load + user_.put);
  if (isRaise(op, program)) return flags;
  if (op.dst.buf != schedule::Buf::Out) {
    const double fetch = isFetched(op) && !isPublished(op) ? machine_.exchangeNs * across_ : 0;
    return flags + fetch + loadNs(op.src, bytes) +
           bytes * (isPublished(op) ? tmp_.publish : tmp_.put);
  }
  if (costs_.oneProcess) return flags + loadNs(op.src, bytes) + bytes * user_.put;
  return flags + cmaNs(machine_.cmaPut, bytes, static_cast<double>(layout_.segments()));
}

double OpPrices::reduceNs(const schedule::Op& op, const schedule::Program& program) const {
  const double bytes = this->bytes(op);
  const double add = std::max(0.0, 1 / machine_.foldNear - near_.load);
  double loads = 0;
  for (std::uint32_t k = 0; k < op.operands; ++k)
    loads += bytes * add + loadNs(program.operands[op.firstOperand + k], bytes);
  return moveNs(loads, op.dst, bytes);
}

double OpPrices::loadNs(schedule::Slot slot, double bytes) const {
  if (slot.buf == schedule::Buf::Tmp) return bytes * tmp_.take;
  if (slot.owner == schedule::kMine) return bytes * user_.load;
  if (reach_ == Reach::Mapped) return bytes * user_.take;
  // Into a tile, which is in the nearest cache then.
  return cmaNs(machine_.cmaTake, bytes, tilesOf(bytes)) +
         bytes * (near_.store + near_.load - user_.store);
}

// What is loaded in so long, and stored there.
double OpPrices::moveNs(double loadsNs, schedule::Slot to, double bytes) const {
  if (to.buf == schedule::Buf::Tmp)
    return loadsNs + bytes * (schedule_.shared ? near_ : tmp_).store;
  if (!streams_) return loadsNs + bytes * user_.store;
  return bytes > 0 ? loadsNs + bytes * user_.storePast(loadsNs / bytes) : 0;
}

// A copy into a peer's memory, or out of it, in so many calls.
double OpPrices::cmaNs(const tune::Curve& curve, double bytes, double calls) const {
  if (machine_.cmaCallNs <= 0) return kNever;
  return calls * machine_.cmaCallNs + bytes * curve.nsPerByte(footprint_);
}

// What an op costs more because its bytes cross from one NUMA node to another.
double OpPrices::furtherNs(const schedule::Op& op, const schedule::Program& program) const {
  if (costs_.memoryNodes.empty()) return 0;
  const double bytes = this->bytes(op);
  double ns = 0;
  if (op.kind == schedule::OpKind::Put && costs_.isFar(rank_, op.peer) && !isPublished(op))
    ns += bytes * (op.dst.buf == schedule::Buf::Tmp ? tmp_ : user_).furtherPut;
  if (op.kind == schedule::OpKind::Put || op.kind == schedule::OpKind::Copy)
    ns += furtherTakeNs(op.src, bytes);
  for (std::uint32_t k = 0; k < op.operands; ++k)
    ns += furtherTakeNs(program.operands[op.firstOperand + k], bytes);
  return ns;
}

double OpPrices::furtherTakeNs(schedule::Slot slot, double bytes) const {
  if (slot.buf == schedule::Buf::Tmp) return farWrites_[slot.index] ? bytes * tmp_.furtherTake : 0;
  const bool isFar = slot.owner != schedule::kMine && costs_.isFar(rank_, slot.owner);
  return isFar ? bytes * user_.furtherTake : 0;
}

// As BindTarget says.
std::uint64_t OpPrices::regionBytes() const {
  return costs_.arenaBytes / schedule_.ranks / transport::kLine * transport::kLine;
}

std::uint32_t OpPrices::slotsPerRegion() {
  std::uint32_t slots = 0;
  for (const std::uint32_t rank : schedule_.typical)
    slots = std::max(slots, StagingMap::mostOf(schedule_, program(rank)).slots);
  return slots;
}

// What the lanes in flight read of staging memory, and write to that of peers, or for them: of the rank
// that does most of it.
double OpPrices::stagingBytes() {
  std::uint64_t chunks = 0;
  for (const std::uint32_t rank : schedule_.typical)
    chunks = std::max(chunks, stagedChunks(program(rank)));
  const auto lanes = std::min<std::uint64_t>(layout_.segments(), transport::kMaxLanes);
  return static_cast<double>(lanes * layout_.stride() * chunks);
}

std::uint64_t OpPrices::stagedChunks(const schedule::Program& program) const {
  using schedule::Buf, schedule::OpKind;
  std::uint64_t chunks = 0;
  for (const schedule::Op& op : program.ops) {
    if (op.kind == OpKind::Wait) continue;
    const bool puts = op.kind == OpKind::Put && op.dst.buf == Buf::Tmp && !isRaise(op, program);
    const bool reads = op.operands == 0 && op.src.buf == Buf::Tmp;
    const auto operands = std::span(program.operands).subspan(op.firstOperand, op.operands);
    const auto read = std::ranges::count(operands, Buf::Tmp, &schedule::Slot::buf);
    chunks += op.chunks * (std::uint64_t{puts} + reads + static_cast<std::uint64_t>(read));
  }
  return chunks;
}

// In all segments together.
double OpPrices::bytes(const schedule::Op& op) const {
  double bytes = 0;
  for (std::uint32_t j = 0; j < op.chunks; ++j) {
    const double limit = static_cast<double>(layout_.limit(op.shape + j));
    const double most = static_cast<double>(layout_.segments() * layout_.stride());
    bytes += std::min(limit, most);
  }
  return bytes;
}

}  // namespace weft::plan
