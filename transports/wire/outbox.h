// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "transports/wire/area_wire.h"
#include "transports/wire/bounce_buffer.h"

namespace weft::wire {

// The sending half of a WireTransport: cuts each put into writes.
//
// A put becomes its payload, in pieces over the rails, and its record, each with immediate data
// that names the put's arrival slot. On an ordered wire only the last write of a rail has a remote
// completion, which stands for the others of that rail. Sources from which the wire can send
// are sent in place, and the put is Pending until they are free; others are copied, and it is Done.
class Outbox {
 public:
  Outbox(AreaWire& wire, BounceBuffer bounce, const WindowLayout& layout);

  static std::size_t maxPut(const WireCaps& wire);

  PutResult put(const Put& put, std::uint32_t arrival);
  // Immediate data without a put. False: not now.
  bool tell(std::uint32_t peer, ImmediateData immediate);
  // Offers again what the wire has refused.
  void retry();
  // The wire has sent this. True: that was the last of a Pending put, whose answer is in `done`.
  bool sent(std::uint64_t cookie, Event* done);
  // Forgets the puts to that peer up to the next Pending one, given as Failed; false: all of them.
  bool forget(std::uint32_t peer, Event* failed);
  bool isRefused() const { return !refused_.empty(); }
  std::size_t outstanding() const { return BounceBuffer::kSlots - free_.size(); }
  bool isPending(std::uint32_t peer) const {
    return std::ranges::any_of(slots_, [&](const Slot& s) { return s.pending && s.peer == peer; });
  }

 private:
  struct Slot {
    std::uint32_t peer = 0;
    std::uint32_t generation = 0;  // tells late answers of its last use
    std::uint32_t writes = 0;      // not sent yet
    std::uint32_t pieces = 0;      // of these, those that read the caller's memory
    std::uint32_t blocks = 0;      // a bit each
    std::uint64_t cookie = 0;
    bool busy = false;
    bool pending = false;
  };
  struct Cut {
    std::uint32_t pieces = 0;
    std::size_t bytes = 0;  // of all but the last
    bool copied = false;
    bool inBlocks = false;
  };

  Cut cutFor(const Put& put) const;
  bool takeBlocks(const Cut& cut, Slot* slot);
  const std::byte* sourceOf(const Put& put, const Cut& cut, std::uint32_t slot,
                            std::uint32_t piece) const;
  void writePut(const Put& put, const Cut& cut, std::uint32_t slot, std::uint32_t arrival);
  void write(const WireWrite& write);
  void release(std::uint32_t slot);
  std::uint64_t cookieOf(std::uint32_t slot, bool isPiece) const {
    static_assert(2 * BounceBuffer::kSlots < 1u << AreaWire::kCookieBits);
    return std::uint64_t{slots_[slot].generation} << 32 | slot << 1 | (isPiece ? 1u : 0u);
  }

  AreaWire& wire_;
  const WireCaps caps_;
  BounceBuffer bounce_;
  const std::uint64_t arena_;  // where WireRegion::Window begins in a window
  std::array<Slot, BounceBuffer::kSlots> slots_{};
  std::vector<std::uint32_t> free_;
  std::uint32_t freeBlocks_ = (1u << BounceBuffer::kBlocks) - 1;
  std::vector<std::uint32_t> firstRail_;  // by peer: rotates, so that short puts use all rails
  std::vector<WireWrite> refused_;        // of at most one put and one tell, in order
  bool failed_ = false;
};

}  // namespace weft::wire
