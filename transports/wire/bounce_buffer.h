// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transports/window.h"

namespace weft::wire {

using namespace transport;

// The second registered memory of a rank on a wire, beside its staging arenas. Peers write into its
// first part only:
//
//   records   one for each arrival slot: what the peers write in its place, which
//             the owner fills from it once all remote completions of the put have come
//   slots     what goes out: a record and a short payload each
//   blocks    longer payloads that the wire cannot send from where they lie
class BounceBuffer {
 public:
  static constexpr std::uint32_t kSlots = 256;  // puts on their way
  static constexpr std::size_t kPayloadBytes = 4096;
  static constexpr std::uint32_t kBlocks = 16;
  static constexpr std::size_t kBlockBytes = std::size_t{128} << 10;

  struct Record {
    std::uint64_t flag = 0;
    std::uint64_t tag = 0;
    std::byte inlined[kInlineBytes] = {};
  };
  static_assert(sizeof(Record) == sizeof(ArrivalSlot));

  BounceBuffer(std::span<std::byte> memory, const WindowLayout& layout)
      : base_(memory.data()), arrivals_(arrivalsOf(layout)) {}

  static std::uint32_t arrivalsOf(const WindowLayout& layout) {
    return static_cast<std::uint32_t>((layout.arena() - layout.arrivals()) / sizeof(ArrivalSlot));
  }
  static std::size_t bytes(const WindowLayout& layout) {
    return blocksAt(arrivalsOf(layout)) + kBlocks * kBlockBytes;
  }
  static std::size_t recordBytes(const WindowLayout& layout) { return slotsAt(arrivalsOf(layout)); }
  static std::uint64_t recordAt(std::uint32_t arrival) { return arrival * sizeof(Record); }

  std::uint32_t arrivals() const { return arrivals_; }
  Record& arrived(std::uint32_t arrival) const { return at(recordAt(arrival)); }
  Record& record(std::uint32_t slot) const { return at(slotAt(slot)); }
  std::byte* payload(std::uint32_t slot) const { return base_ + slotAt(slot) + sizeof(Record); }
  std::byte* block(std::uint32_t i) const { return base_ + blocksAt(arrivals_) + i * kBlockBytes; }

 private:
  static constexpr std::size_t kSlotBytes = sizeof(Record) + kPayloadBytes;
  static std::size_t slotsAt(std::uint32_t arrivals) { return recordAt(arrivals); }
  static std::size_t blocksAt(std::uint32_t arrivals) {
    return roundUp(slotsAt(arrivals) + kSlots * kSlotBytes, kPage);
  }
  std::size_t slotAt(std::uint32_t slot) const { return slotsAt(arrivals_) + slot * kSlotBytes; }
  Record& at(std::size_t offset) const { return *reinterpret_cast<Record*>(base_ + offset); }

  std::byte* base_;
  std::uint32_t arrivals_;
};

}  // namespace weft::wire
