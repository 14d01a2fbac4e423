// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transports/ofi/choice.h"
#include "transports/ofi/rail.h"
#include "transports/wire/wire.h"

namespace weft::ofi {

// What a rank tells the others of its area. Plain bytes, of one size on all ranks.
struct AreaContact {
  std::uint64_t number = 0;  // of it, of that rank's areas
  std::uint64_t regionBytes[kWireRegions] = {};
  Place place[kMaxRails][kWireRegions] = {};
};

// A communicator's memory, here and at its other ranks.
class Area {
 public:
  // `ranks`, `rails`: of the wire.
  Area(WireArea area, std::uint32_t ranks, std::uint32_t rails);

  const WindowLayout& layout() const { return area_.layout; }
  const Regions& regions() const { return area_.regions; }
  // Its rank in the communicator; kNobody: none.
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  std::uint32_t rankOf(std::uint32_t peer) const {
    return peer < rankOf_.size() ? rankOf_[peer] : kNobody;
  }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(area_.peers.size()); }
  std::uint32_t peer(std::uint32_t rank) const { return area_.peers[rank]; }

  // Of that rank: its number of the area, how large a region is, and what a rail needs to write there.
  void learn(std::uint32_t rank, const AreaContact& contact);
  std::uint16_t numberAt(std::uint32_t rank) const { return theirs_[rank].number; }
  std::uint64_t bytesAt(std::uint32_t rank, WireRegion region) const {
    return theirs_[rank].regionBytes[static_cast<std::size_t>(region)];
  }
  const Place& placeAt(std::uint32_t rank, std::uint32_t rail, WireRegion region) const {
    return places_[rank * rails_ + rail][static_cast<std::size_t>(region)];
  }

  // By rail; of area 0 the rails have it themselves.
  std::vector<Memory> memory;

 private:
  struct Theirs {
    std::uint16_t number = 0;
    std::array<std::uint64_t, kWireRegions> regionBytes = {};
  };

  const WireArea area_;
  const std::uint32_t rails_;
  std::vector<std::uint32_t> rankOf_;                    // by peer of the wire
  std::vector<Theirs> theirs_;                           // by rank
  std::vector<std::array<Place, kWireRegions>> places_;  // by rank and rail
};

}  // namespace weft::ofi
