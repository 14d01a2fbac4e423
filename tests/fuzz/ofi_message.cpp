// SPDX-License-Identifier: Apache-2.0
// Messages over libfabric, where a provider has no remote writes.
#include "transports/ofi/message.h"

#include <array>

#include "fuzz.h"

namespace weft::fuzz {

void tryInput(Input input) {
  static std::array<std::byte, 256> window, bounce;
  const std::array<std::span<std::byte>, 2> regions{window, bounce};
  ofi::Header header;
  if (!ofi::readHeader(bytesOf(input), 0x77666d31, &header)) return;
  const transport::WindowLayout layout{
      .ranks = 2, .arrivalSlots = 2, .pairArrivalSlots = 2, .apart = 1, .arenaBytes = 128};
  const std::span<std::byte> place = ofi::placeOf(header, input.size(), regions, layout);
  if (place.data() == nullptr) return;
  require(place.size() == input.size() - sizeof(header), "a payload goes to a place of its size");
  const std::span<std::byte> region = regions[header.region];
  require(
      place.data() >= region.data() && place.data() + place.size() <= region.data() + region.size(),
      "a payload stays in its region");
  for (std::size_t at = header.target; at < header.target + place.size(); ++at)
    require(at % 128 / 64 == header.rank, "a payload is in a part of its sender's");
}

}  // namespace weft::fuzz
