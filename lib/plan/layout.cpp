// SPDX-License-Identifier: Apache-2.0
#include "plan/layout.h"

#include <algorithm>

namespace weft::plan {
namespace {

constexpr std::uint64_t kAlign = 64;  // a multiple of every element size

std::uint64_t divideUp(std::uint64_t n, std::uint64_t by) { return (n + by - 1) / by; }
// How many pieces of at most `most` bytes; at least one.
std::uint64_t piecesOf(std::uint64_t bytes, std::uint64_t most) {
  return most == 0 ? 1 : std::max<std::uint64_t>(1, divideUp(bytes, most));
}

bool cutsBlocks(const Call& call) {
  const schedule::Collective c = call.collective;
  return isStep(call) ||
         (c != schedule::Collective::AllReduce && c != schedule::Collective::Broadcast &&
          c != schedule::Collective::Reduce);
}

}  // namespace

ByteLayout::ByteLayout(const schedule::Schedule& schedule, const Call& call, const Budget& budget)
    : collective_(call.collective),
      chunks_(std::max(1u, schedule.logicalChunks)),
      inChunks_(schedule.inChunks),
      outChunks_(schedule.outChunks),
      tmpChunks_(schedule.shared ? 0 : schedule.tmpChunks),  // there it lies nowhere (bind.h)
      parts_(schedule.parts),
      wantedSegment_(schedule.segmentBytes) {
  if (cutsBlocks(call))
    cutBlocks(call, schedule.ranks, budget);
  else
    cutVector(call.count, reduce::sizeOf(call.type), budget);
}

std::uint64_t ByteLayout::bufferBytes() const {
  const std::uint64_t larger = std::max(inChunks_, outChunks_);
  if (collective_ == schedule::Collective::Broadcast || larger == 0) return total_;
  return total_ + total_ / larger * std::min(inChunks_, outChunks_);
}

// One slot by itself has half of what a long message may have: broadcasts gained nothing by more.
std::uint64_t ByteLayout::stagedChunk(std::uint64_t wanted, const Budget& budget) const {
  const std::uint64_t usual = budget.stagingBytes / tmpChunks_;
  const std::uint64_t most = budget.longStagingBytes / std::max<std::uint64_t>(2, tmpChunks_);
  return most > usual ? std::clamp(wanted / kOverlap, usual, most) : usual;
}

// The largest chunk, at most `wanted`, whose protocol slots fit the budget.
std::uint64_t ByteLayout::largestStride(std::uint64_t wanted, const Budget& budget) const {
  if (tmpChunks_ == 0) return wanted;
  const std::uint64_t slots = budget.slots != 0 ? budget.slots : tmpChunks_;
  const std::uint64_t hard = budget.arenaBytes / slots / kAlign * kAlign;
  const std::uint64_t chunk = wantedSegment_ > 0
                                  ? static_cast<std::uint64_t>(wantedSegment_) / chunks_
                                  : stagedChunk(wanted, budget);
  const std::uint64_t soft = std::max(chunk / kAlign * kAlign, kAlign);
  return std::min(wanted, std::min(hard, soft));
}

// Segments of equal size, so that the last one is no straggler; chunks on cache lines once they are
// longer than a few of them.
void ByteLayout::cutVector(std::uint64_t count, std::uint64_t elementBytes, const Budget& budget) {
  total_ = count * elementBytes;
  const std::uint64_t even = divideUp(count, chunks_) * elementBytes;
  segments_ = piecesOf(total_, largestStride(transport::roundUp(even, kAlign), budget) * chunks_);
  const std::uint64_t chunk = divideUp(count, segments_ * chunks_) * elementBytes;
  stride_ = chunk >= 4 * kAlign || segments_ > 1 ? transport::roundUp(chunk, kAlign) : chunk;
  segmentBytes_ = stride_ * chunks_;
  segments_ = piecesOf(total_, segmentBytes_);
}

void ByteLayout::cutBlocks(const Call& call, std::uint32_t ranks, const Budget& budget) {
  const std::uint64_t elementBytes = reduce::sizeOf(call.type);
  std::uint64_t packed = 0;
  bool even = true;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    const std::uint64_t bytes = (call.counts.empty() ? call.count : call.counts[r]) * elementBytes;
    const bool follows = call.displs.empty() || bytes == 0;
    const std::uint64_t offset = follows ? packed : call.displs[r] * elementBytes;
    even = even && offset == packed && (r == 0 || bytes == blockBytes_[0]);
    blockBytes_.push_back(bytes);
    blockOffset_.push_back(offset);
    packed += bytes;
  }
  const std::uint64_t longest = *std::max_element(blockBytes_.begin(), blockBytes_.end());
  const std::uint64_t part = divideUp(longest / elementBytes, parts_) * elementBytes;
  segments_ = piecesOf(longest, largestStride(transport::roundUp(part, kAlign), budget) * parts_);
  stride_ =
      segments_ == 1 ? part : transport::roundUp(divideUp(longest, segments_ * parts_), kAlign);
  segmentBytes_ = stride_ * parts_;
  vector_ = even && segments_ == 1 && segmentBytes_ == longest;
  total_ = packed;
}

std::uint64_t ByteLayout::inOffset(std::uint32_t slot) const {
  return offset(slot, schedule::hasOneIn(collective_));
}

std::uint64_t ByteLayout::outOffset(std::uint32_t slot) const {
  return offset(slot, schedule::hasOneOut(collective_));
}

std::uint64_t ByteLayout::offset(std::uint32_t slot, bool isOneBlock) const {
  if (isOneBlock || vector_) return slot * stride_;
  return blockOffset_[slot / parts_] + slot % parts_ * stride_;
}

std::uint64_t ByteLayout::limit(std::uint32_t logical) const {
  if (!vector_) {
    const std::uint64_t before = logical % parts_ * stride_, block = blockBytes_[logical / parts_];
    return block > before ? block - before : 0;
  }
  const std::uint64_t start = logical * stride_;
  return start < total_ ? total_ - start : 0;
}

}  // namespace weft::plan
