// SPDX-License-Identifier: Apache-2.0
// Messages over libfabric, where a provider has no remote writes.
#include "transports/ofi/message.h"

#include <array>
#include <cstring>
#include <vector>

#include "fuzz.h"

namespace weft::fuzz {
namespace {

constexpr std::uint64_t kSecret = 0x77666d31;

// What a rank can send that knows the secret: near its limits, in all that the header says.
std::vector<std::byte> messageOfAPeer(Input input) {
  FuzzedDataProvider from(input.data(), input.size());
  ofi::Header header;
  header.secret = kSecret;
  header.rank = from.ConsumeIntegralInRange<std::uint32_t>(0, 2);
  header.target = from.ConsumeIntegralInRange<std::uint64_t>(0, 260);
  header.region = from.ConsumeIntegralInRange<std::uint16_t>(0, 3);
  header.bytes = from.ConsumeIntegralInRange<std::uint32_t>(0, 130);
  std::vector<std::byte> message(sizeof(header) + header.bytes);
  std::memcpy(message.data(), &header, sizeof(header));
  return message;
}

void tryMessage(std::span<const std::byte> message) {
  static std::array<std::byte, 256> window, bounce;
  const std::array<std::span<std::byte>, 2> regions{window, bounce};
  ofi::Header header;
  if (!ofi::readHeader(message, kSecret, &header)) return;
  const transport::WindowLayout layout{
      .ranks = 2, .arrivalSlots = 2, .pairArrivalSlots = 2, .apart = 1, .arenaBytes = 128};
  const std::span<std::byte> place =
      ofi::placeOf(header, message.size(), regions, layout, header.rank);
  if (place.data() == nullptr) return;
  require(place.size() == message.size() - sizeof(header), "a payload goes to a place of its size");
  const std::span<std::byte> region = regions[header.region];
  require(
      place.data() >= region.data() && place.data() + place.size() <= region.data() + region.size(),
      "a payload stays in its region");
  for (std::size_t at = header.target; at < header.target + place.size(); ++at)
    require(at % 128 / 64 == header.rank, "a payload is in a part of its sender's");
}

}  // namespace

void tryInput(Input input) {
  tryMessage(bytesOf(input));
  tryMessage(messageOfAPeer(input));
}

}  // namespace weft::fuzz
