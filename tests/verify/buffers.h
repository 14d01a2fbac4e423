// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/verify/job.h"
#include "verify/memory.h"

namespace weft::verify {

// The buffers of one call's callers: what collective.h says that they hold before the call and must
// hold after it, byte by byte. Computed from the call alone, not from its layout (plan/layout.h).
//
// The memory of a rank has In, a gap, and Out; in place they overlap as the public header says.
class Buffers {
 public:
  // `salt` makes the inputs differ from those of all other calls.
  Buffers(const PlannedCall& call, std::uint32_t ranks, std::uint32_t salt);

  struct Range {
    std::uint32_t begin = 0, bytes = 0;
  };
  Range inOf(std::uint32_t rank) const { return ranges_[rank].in; }
  Range outOf(std::uint32_t rank) const { return ranges_[rank].out; }
  Memory& memoryOf(std::uint32_t rank) { return memories_[rank]; }

  Value input(std::uint32_t rank, std::uint32_t position) const;
  const Value& total() const { return total_; }  // the sum of all inputs
  // Which position of the vector, or of all blocks together, rank `rank`'s own block begins with.
  std::uint32_t startOf(std::uint32_t rank) const { return blocks_[rank].start; }

  void fill(std::uint32_t rank);
  // Notes that an epilogue of the caller's has got these bytes of the rank's block. False: it had
  // them, or the block has none such.
  bool handOver(std::uint32_t rank, std::uint32_t from, std::uint32_t bytes);
  // Empty if `rank` has its result, else what is wrong with it.
  std::string check(std::uint32_t rank) const;

 private:
  struct Block {
    std::uint32_t start;   // position of its first byte
    std::uint32_t offset;  // in a buffer that has all blocks
    std::uint32_t bytes;
  };
  struct Ranges {
    Range in, out;
  };

  void cutBlocks();
  bool isAbsent(bool in, std::uint32_t rank) const;
  bool hasOneBlock(bool in) const;
  // What the buffer holds before (In) and after (Out) the call; pieces by byte, not in order.
  Pieces contents(bool in, std::uint32_t rank) const;
  Value valueOf(bool in, std::uint32_t rank, std::uint32_t block) const;
  void place(std::uint32_t rank);
  std::string checkPiece(std::uint32_t rank, const Piece& want) const;
  std::string checkValue(const Value& value, const Value& want) const;

  const PlannedCall& planned_;
  const plan::Call& call_;
  const std::uint32_t ranks_, salt_;
  const Value total_;
  std::vector<Block> blocks_;  // by rank; of a vector: one
  std::vector<Ranges> ranges_;
  std::vector<Memory> memories_;
  std::vector<Slots> handed_;  // by rank: bytes of its block that its epilogue has got
};

}  // namespace weft::verify
