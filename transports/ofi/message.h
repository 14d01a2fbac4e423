// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "transports/window.h"

namespace weft::ofi {

// In front of each payload that travels as a message.
struct Header {
  std::uint64_t secret = 0;  // the receiver's: Contact
  std::uint32_t rank = 0;
  std::uint32_t bytes = 0;
  std::uint64_t target = 0;
  std::uint32_t immediate = 0;
  std::uint16_t region = 0;
  std::uint16_t area = 0;  // the receiver's number
};

// Anybody may send anything: the header of what has arrived, and whether its sender knows the
// secret.
inline bool readHeader(std::span<const std::byte> message, std::uint64_t secret, Header* header) {
  if (message.size() < sizeof(Header)) return false;
  std::memcpy(header, message.data(), sizeof(Header));
  return header->secret == secret;
}

// Where the payload of such a message goes; empty with a null pointer if it does not fit in there,
// or is not for its sender to write: `rank` of the communicator whose regions these are.
inline std::span<std::byte> placeOf(const Header& header, std::size_t messageBytes,
                                    std::span<const std::span<std::byte>> regions,
                                    const transport::WindowLayout& layout, std::uint32_t rank) {
  constexpr std::uint32_t kOpen = 2;  // of the regions; behind them lies what is sent from here
  if (header.region >= kOpen || header.bytes != messageBytes - sizeof(Header)) return {};
  const std::span<std::byte> region = regions[header.region];
  if (header.bytes > region.size() || header.target > region.size() - header.bytes) return {};
  if (layout.apart != 0 && header.bytes != 0) {
    constexpr std::size_t kRecord = sizeof(transport::ArrivalSlot);
    const bool ofRecord = layout.raisedBy(header.target / kRecord) == rank &&
                          header.target % kRecord + header.bytes <= kRecord;
    const bool staged = layout.isStagedBy(rank, header.target, header.bytes);
    if (!(header.region == 0 ? staged : ofRecord)) return {};
  }
  return region.subspan(header.target, header.bytes);
}

}  // namespace weft::ofi
