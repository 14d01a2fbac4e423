// SPDX-License-Identifier: Apache-2.0
#include "control/rank_set.h"

namespace weft::control {
namespace {

constexpr std::uint32_t kBits = 1;  // the form, below the number of ranges or of bytes of bits

net::Bytes asRanges(const RankSet& set) {
  net::ByteWriter writer;
  writer.small(set.ranges().size() << 1);
  std::uint32_t end = 0;
  for (const RankSet::Range& range : set.ranges()) {
    writer.small(range.first - end).small(range.last - range.first);
    end = range.last + 1;
  }
  return writer.take();
}

net::Bytes asBits(const RankSet& set) {
  const std::uint32_t first = set.ranges().front().first;
  net::Bytes bits((set.ranges().back().last - first) / 8 + 1);
  set.forEach([&](std::uint32_t rank) {
    bits[(rank - first) / 8] |= std::byte{1} << ((rank - first) % 8);
  });
  return net::ByteWriter().small(bits.size() << 1 | kBits).small(first).raw(bits).take();
}

bool decodeBits(net::ByteReader* from, std::size_t ranks, std::size_t bytes, RankSet* set) {
  const std::uint64_t first = from->small<std::uint32_t>();
  const net::ByteView bits = from->raw(bytes);
  for (std::size_t i = 0; i < 8 * bits.size(); ++i) {
    if ((bits[i / 8] >> (i % 8) & std::byte{1}) == std::byte{0}) continue;
    if (first + i >= ranks) return false;
    set->add(static_cast<std::uint32_t>(first + i));
  }
  return from->ok();
}

bool decodeRanges(net::ByteReader* from, std::size_t ranks, std::size_t count, RankSet* set) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < count && from->ok(); ++i) {
    const std::uint64_t first = end + from->small<std::uint32_t>();
    end = first + from->small<std::uint32_t>() + 1;
    if (end > ranks) return false;
    set->add({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end - 1)});
  }
  return from->ok();
}

}  // namespace

void RankSet::add(Range range) {
  if (!ranges_.empty() && ranges_.back().last + 1 == range.first)
    ranges_.back().last = range.last;
  else
    ranges_.push_back(range);
}

std::size_t RankSet::size() const {
  std::size_t count = 0;
  for (const Range& range : ranges_) count += range.last - range.first + 1;
  return count;
}

void encode(const RankSet& set, net::ByteWriter* to) {
  const net::Bytes ranges = asRanges(set);
  const net::Bytes bits = set.empty() ? ranges : asBits(set);
  to->raw(bits.size() < ranges.size() ? bits : ranges);
}

bool decode(net::ByteReader* from, std::size_t ranks, RankSet* set) {
  *set = {};
  const auto head = from->small<std::uint32_t>();
  return (head & kBits) != 0 ? decodeBits(from, ranks, head >> 1, set)
                             : decodeRanges(from, ranks, head >> 1, set);
}

}  // namespace weft::control
