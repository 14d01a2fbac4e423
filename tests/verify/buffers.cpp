// SPDX-License-Identifier: Apache-2.0
#include "tests/verify/buffers.h"

#include <algorithm>

#include "base/text.h"

namespace weft::verify {
namespace {

constexpr std::uint32_t kGap = 64;

bool isVector(const plan::Call& call) {
  const schedule::Collective c = call.collective;
  return c == schedule::Collective::Broadcast || c == schedule::Collective::Reduce ||
         (c == schedule::Collective::AllReduce && call.op != reduce::RedOp::Epilogue);
}

}  // namespace

Buffers::Buffers(const PlannedCall& call, std::uint32_t ranks, std::uint32_t salt)
    : planned_(call),
      call_(call.call),
      ranks_(ranks),
      salt_(salt * ranks),
      total_(completeSum(salt_, ranks)),
      ranges_(ranks),
      handed_(ranks) {
  cutBlocks();
  for (std::uint32_t r = 0; r < ranks; ++r) place(r);
}

void Buffers::cutBlocks() {
  const auto element = static_cast<std::uint32_t>(reduce::sizeOf(call_.type));
  std::uint32_t packed = 0;
  for (std::uint32_t b = 0; b < (isVector(call_) ? 1 : ranks_); ++b) {
    const std::uint64_t count = call_.counts.empty() ? call_.count : call_.counts[b];
    const auto bytes = static_cast<std::uint32_t>(count) * element;
    const auto displ = static_cast<std::uint32_t>(call_.displs.empty() ? 0 : call_.displs[b]);
    blocks_.push_back({packed, call_.displs.empty() ? packed : displ * element, bytes});
    packed += bytes;
  }
}

bool Buffers::isAbsent(bool in, std::uint32_t rank) const {
  const schedule::Collective c = call_.collective;
  const auto root = static_cast<std::uint32_t>(call_.root);
  if (planned_.withoutUnusedBuffer &&
      c == (in ? schedule::Collective::AllGather : schedule::Collective::ReduceScatter))
    return true;
  return in ? !schedule::hasIn(c, root, rank) : !schedule::hasOut(c, root, rank);
}

bool Buffers::hasOneBlock(bool in) const {
  return in ? schedule::hasOneIn(call_.collective) : schedule::hasOneOut(call_.collective);
}

Value Buffers::input(std::uint32_t rank, std::uint32_t position) const {
  Value v = inputOf(salt_ + rank, position);
  v.input = false;  // their places need no other look
  return v;
}

Pieces Buffers::contents(bool in, std::uint32_t rank) const {
  Pieces pieces;
  if (isAbsent(in, rank)) return pieces;
  for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
    const Block& block = blocks_[b];
    if (block.bytes == 0 || (hasOneBlock(in) && b != rank)) continue;
    pieces.push_back({hasOneBlock(in) ? 0 : block.offset, block.bytes, valueOf(in, rank, b)});
  }
  return pieces;
}

Value Buffers::valueOf(bool in, std::uint32_t rank, std::uint32_t block) const {
  const std::uint32_t start = blocks_[block].start;
  if (in) return input(rank, start);
  const auto root = static_cast<std::uint32_t>(call_.root);
  Value v = total_;
  switch (call_.collective) {
    case schedule::Collective::Broadcast:
    case schedule::Collective::Scatter:
      return input(root, start);
    case schedule::Collective::Gather:
      return input(block, start);
    case schedule::Collective::AllToAll:
      return input(block, blocks_[rank].start);
    case schedule::Collective::AllGather:
      v = input(block, start);
      v.finished = call_.op == reduce::RedOp::Epilogue;
      return v;
    default:
      v.chunk = start;
      v.finished =
          call_.op == reduce::RedOp::Epilogue || (call_.op == reduce::RedOp::Avg && ranks_ > 1);
      v.scaled = call_.op == reduce::RedOp::PreMulSum;
      return v;
  }
}

// In place, the smaller buffer is a block of the larger one.
void Buffers::place(std::uint32_t rank) {
  const auto sizeOf = [](const Pieces& pieces) {
    std::uint32_t size = 0;
    for (const Piece& p : pieces) size = std::max(size, p.first + p.length);
    return size;
  };
  Range& in = ranges_[rank].in;
  Range& out = ranges_[rank].out;
  in.bytes = sizeOf(contents(true, rank));
  out.bytes = sizeOf(contents(false, rank));
  const bool absent = isAbsent(true, rank) || isAbsent(false, rank);
  if (absent || !planned_.isInPlace(rank) || !schedule::allowsInPlace(call_.collective)) {
    out.begin = in.bytes + kGap;
  } else if (hasOneBlock(true)) {
    in.begin = blocks_[rank].offset;
  } else if (hasOneBlock(false)) {
    out.begin = blocks_[rank].offset;
  }
  memories_.emplace_back(std::max(in.begin + in.bytes, out.begin + out.bytes));
}

void Buffers::fill(std::uint32_t rank) {
  for (const Piece& p : contents(true, rank))
    memories_[rank].values.write(ranges_[rank].in.begin + p.first, {{0, p.length, p.value}});
}

bool Buffers::handOver(std::uint32_t rank, std::uint32_t from, std::uint32_t bytes) {
  const Slots::Range had = handed_[rank].touching(from, bytes);
  if (had.begin != had.end || from + bytes > blocks_[rank].bytes) return false;
  handed_[rank].write(from, {{0, bytes, input(rank, from)}});
  return true;
}

std::string Buffers::check(std::uint32_t rank) const {
  const Range& out = ranges_[rank].out;
  std::uint32_t written = 0, wanted = 0;
  for (const Piece& want : contents(false, rank)) {
    const std::string wrong = checkPiece(rank, want);
    if (!wrong.empty()) return wrong;
    wanted += want.length;
  }
  Pieces all;
  for (const Piece& p : memories_[rank].values.pieces()) {
    const std::uint32_t begin = std::max(p.first, out.begin);
    const std::uint32_t end = std::min(p.first + p.length, out.begin + out.bytes);
    written += end > begin ? end - begin : 0;
  }
  if (written != wanted) return "bytes between the blocks of Out are written";
  const bool makes =
      call_.op == reduce::RedOp::Epilogue && !isVector(call_) && blocks_[rank].bytes != 0;
  std::uint32_t missing = 0;
  if (makes && !handed_[rank].read(0, blocks_[rank].bytes, all, missing))
    return text("byte ", missing, " of its block never gets to the epilogue");
  return {};
}

std::string Buffers::checkPiece(std::uint32_t rank, const Piece& want) const {
  const auto read = [&](std::uint32_t r, Pieces* pieces, std::uint32_t* missing) {
    return memories_[r].values.read(ranges_[r].out.begin + want.first, want.length, *pieces,
                                    *missing);
  };
  Pieces pieces, replica;
  std::uint32_t missing = 0;
  if (!read(rank, &pieces, &missing))
    return text("byte ", missing - ranges_[rank].out.begin, " of Out is never written");
  for (const Piece& p : pieces) {
    const std::string wrong = checkValue(p.value, want.value.shifted(p.first));
    if (!wrong.empty()) return text("byte ", want.first + p.first, " of Out ", wrong);
  }
  if (call_.collective != schedule::Collective::AllReduce || !read(0, &replica, &missing))
    return {};
  const auto sameBits = [](const Piece& a, const Piece& b) {
    return a.first == b.first && a.length == b.length && a.value.mix == b.value.mix;
  };
  if (std::ranges::equal(pieces, replica, sameBits)) return {};
  return "its sums have other bits than those on rank 0: another order of additions";
}

std::string Buffers::checkValue(const Value& value, const Value& want) const {
  if (value.chunk != want.chunk) return text("is that of position ", value.chunk);
  if (value.sum != want.sum) return "lacks, doubles or misplaces a contribution";
  if (value.finished != want.finished) return "is not divided, or given to the epilogue, once";
  if (value.scaled != want.scaled) return "is not scaled once";
  if (planned_.order == schedule::SumOrder::Rank && value.mix != want.mix)
    return "is not the sum in rank order";
  return {};
}

}  // namespace weft::verify
