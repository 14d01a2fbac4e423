// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transports/segment.h"

namespace weft {

// The second registered memory of a rank on a wire, beside its segment:
//
//   records   one for each cell of the segment: what the peers write in place of the cell, which
//             the owner fills from it once all notices of the put have come
//   letters   what goes out: a record and a short payload a slot
//   blocks    longer payloads that the wire cannot send from where they lie
class Mailbox {
 public:
  static constexpr std::uint32_t kSlots = 256;  // puts on their way
  static constexpr std::size_t kLetterBytes = 4096;
  static constexpr std::uint32_t kBlocks = 16;
  static constexpr std::size_t kBlockBytes = std::size_t{128} << 10;

  struct Record {
    std::uint64_t word = 0;
    std::uint64_t stamp = 0;
    std::byte inlined[kInlineBytes] = {};
  };
  static_assert(sizeof(Record) == sizeof(Cell));

  Mailbox(std::span<std::byte> memory, const SegmentLayout& layout)
      : base_(memory.data()), cells_(cellsOf(layout)) {}

  static std::uint32_t cellsOf(const SegmentLayout& layout) {
    return static_cast<std::uint32_t>((layout.arena() - layout.cells()) / sizeof(Cell));
  }
  static std::size_t bytes(const SegmentLayout& layout) {
    return blocksAt(cellsOf(layout)) + kBlocks * kBlockBytes;
  }
  static std::uint64_t recordAt(std::uint32_t cell) { return cell * sizeof(Record); }

  std::uint32_t cells() const { return cells_; }
  Record& arrived(std::uint32_t cell) const { return at(recordAt(cell)); }
  Record& record(std::uint32_t slot) const { return at(slotAt(slot)); }
  std::byte* letter(std::uint32_t slot) const { return base_ + slotAt(slot) + sizeof(Record); }
  std::byte* block(std::uint32_t i) const { return base_ + blocksAt(cells_) + i * kBlockBytes; }

 private:
  static constexpr std::size_t kSlotBytes = sizeof(Record) + kLetterBytes;
  static std::size_t slotsAt(std::uint32_t cells) { return recordAt(cells); }
  static std::size_t blocksAt(std::uint32_t cells) {
    return SegmentLayout::roundUp(slotsAt(cells) + kSlots * kSlotBytes, 4096);
  }
  std::size_t slotAt(std::uint32_t slot) const { return slotsAt(cells_) + slot * kSlotBytes; }
  Record& at(std::size_t offset) const { return *reinterpret_cast<Record*>(base_ + offset); }

  std::byte* base_;
  std::uint32_t cells_;
};

}  // namespace weft
