// SPDX-License-Identifier: Apache-2.0
#include "plan/layout.h"

#include <algorithm>

namespace weft {
namespace {

constexpr std::uint64_t kAlign = 64;  // a multiple of every element size

std::uint64_t roundUp(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }
std::uint64_t divideUp(std::uint64_t n, std::uint64_t by) { return (n + by - 1) / by; }

bool cutsBlocks(const Call& call) {
  const Collective c = call.collective;
  if (c == Collective::AllReduce) return call.op == RedOp::Kernel;
  return c != Collective::Broadcast && c != Collective::Reduce;
}

}  // namespace

ByteLayout::ByteLayout(const Schedule& schedule, const Call& call, const Budget& budget)
    : collective_(call.collective),
      chunks_(std::max(1u, schedule.logicalChunks)),
      tmpChunks_(schedule.tmpChunks) {
  const std::uint64_t elementBytes = sizeOf(call.type);
  if (cutsBlocks(call))
    cutBlocks(call, schedule.ranks, budget);
  else
    cutVector(call.count * elementBytes, elementBytes, budget);
}

// The largest chunk, at most `wanted`, whose landing slots fit the budget.
std::uint64_t ByteLayout::largestStride(std::uint64_t wanted, const Budget& budget) const {
  if (tmpChunks_ == 0) return wanted;
  const std::uint64_t slots = budget.slots != 0 ? budget.slots : tmpChunks_;
  const std::uint64_t hard = budget.arenaBytes / slots / kAlign * kAlign;
  const std::uint64_t soft = std::max(budget.landingBytes / tmpChunks_ / kAlign * kAlign, kAlign);
  return std::min(wanted, std::min(hard, soft));
}

// Segments of equal size, so that the last one is no straggler; chunks on cache lines once they are
// longer than a few of them.
void ByteLayout::cutVector(std::uint64_t total, std::uint64_t elementBytes, const Budget& budget) {
  total_ = total;
  const std::uint64_t even = divideUp(total / elementBytes, chunks_) * elementBytes;
  const std::uint64_t most = largestStride(roundUp(even, kAlign), budget);
  segments_ = std::max<std::uint64_t>(1, most == 0 ? 1 : divideUp(total, most * chunks_));
  const std::uint64_t chunk = divideUp(total / elementBytes, segments_ * chunks_) * elementBytes;
  stride_ = chunk >= 4 * kAlign || segments_ > 1 ? roundUp(chunk, kAlign) : chunk;
  segmentBytes_ = stride_ * chunks_;
  segments_ = std::max<std::uint64_t>(1, segmentBytes_ == 0 ? 1 : divideUp(total, segmentBytes_));
}

void ByteLayout::cutBlocks(const Call& call, std::uint32_t ranks, const Budget& budget) {
  const std::uint64_t elementBytes = sizeOf(call.type);
  std::uint64_t packed = 0;
  bool even = true;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    const std::uint64_t bytes = (call.counts.empty() ? call.count : call.counts[r]) * elementBytes;
    const std::uint64_t offset = call.displs.empty() ? packed : call.displs[r] * elementBytes;
    even = even && offset == packed && (r == 0 || bytes == blockBytes_[0]);
    blockBytes_.push_back(bytes);
    blockOffset_.push_back(offset);
    packed += bytes;
  }
  const std::uint64_t longest = *std::max_element(blockBytes_.begin(), blockBytes_.end());
  const std::uint64_t most = largestStride(longest, budget);
  segments_ = std::max<std::uint64_t>(1, most == 0 ? 1 : divideUp(longest, most));
  stride_ = segments_ == 1 ? longest : roundUp(divideUp(longest, segments_), kAlign);
  segmentBytes_ = stride_;
  vector_ = even && segments_ == 1;
  total_ = packed;
}

std::uint64_t ByteLayout::inOffset(std::uint32_t slot) const {
  if (collective_ == Collective::AllGather || collective_ == Collective::Gather) return 0;
  return vector_ ? slot * stride_ : blockOffset_[slot];
}

std::uint64_t ByteLayout::outOffset(std::uint32_t slot) const {
  if (collective_ == Collective::ReduceScatter || collective_ == Collective::Scatter) return 0;
  return vector_ ? slot * stride_ : blockOffset_[slot];
}

std::uint64_t ByteLayout::limit(std::uint32_t logical) const {
  if (!vector_) return blockBytes_[logical];
  const std::uint64_t start = logical * stride_;
  return start < total_ ? total_ - start : 0;
}

}  // namespace weft
