// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/call.h"
#include "plan/plan.h"
#include "schedule/ir.h"

namespace weft::plan {

// How many bytes of protocol memory an invocation may use, and the largest message in one segment.
struct Budget {
  std::uint64_t arenaBytes = 0;    // hard limit: the memory of one lane
  std::uint64_t stagingBytes = 0;  // soft limit: what stays in cache while segments are in flight
  std::uint32_t slots = 0;         // Tmp slots that share arenaBytes; 0: all of the schedule's
  // Soft limit of messages that make kOverlap segments of so much, if it is more: what is stored over
  // lines that the cache of who has read them still holds must ask for each.
  std::uint64_t longStagingBytes = 0;
};

// So many segments overlap well, what one rank does with what the next does.
inline constexpr std::uint64_t kOverlap = 4;

// Where the slots of a schedule lie in bytes, for one call: the bridge between "chunk 3 of Out" and
// an offset. A pure function, equal on all ranks.
//
// Two forms. A *vector* is cut into chunks of `stride` bytes. *Blocks* (one a rank, of any length
// and place) are not contiguous within a segment, so runs of them are handled one by one; the parts of
// one are. Equal packed blocks in a single segment, which their parts fill, are a vector.
class ByteLayout {
 public:
  ByteLayout(const schedule::Schedule& schedule, const Call& call, const Budget& budget);

  bool isVector() const { return vector_; }
  // Do these logical chunks lie side by side, so that they are one piece of memory?
  bool isOnePiece(schedule::Span chunks) const {
    return vector_ || chunks.chunks <= 1 ||
           chunks.first / parts_ == (chunks.first + chunks.chunks - 1) / parts_;
  }
  std::uint64_t stride() const { return stride_; }  // bytes of a chunk, and of a Tmp slot
  std::uint64_t segments() const { return segments_; }
  std::uint64_t segmentBytes() const { return segmentBytes_; }
  std::uint64_t totalBytes() const { return total_; }  // of the larger buffer
  std::uint64_t bufferBytes() const;  // of In and Out together; who broadcasts does so in place

  std::uint64_t inOffset(std::uint32_t slot) const;
  std::uint64_t outOffset(std::uint32_t slot) const;
  // Bytes from the start of this logical chunk to the end of what it belongs to; see BoundOp.
  std::uint64_t limit(std::uint32_t logical) const;

 private:
  void cutVector(std::uint64_t count, std::uint64_t elementBytes, const Budget& budget);
  void cutBlocks(const Call& call, std::uint32_t ranks, const Budget& budget);
  std::uint64_t stagedChunk(std::uint64_t wanted, const Budget& budget) const;
  std::uint64_t largestStride(std::uint64_t wanted, const Budget& budget) const;
  std::uint64_t offset(std::uint32_t slot, bool isOneBlock) const;

  schedule::Collective collective_;
  std::uint64_t chunks_;
  std::uint64_t inChunks_, outChunks_;
  std::uint64_t tmpChunks_;
  std::uint32_t parts_;
  double wantedSegment_;  // bytes; 0: any
  bool vector_ = true;
  std::uint64_t total_ = 0;
  std::uint64_t stride_ = 0;
  std::uint64_t segments_ = 1;
  std::uint64_t segmentBytes_ = 0;
  std::vector<std::uint64_t> blockBytes_;
  std::vector<std::uint64_t> blockOffset_;
};

}  // namespace weft::plan
