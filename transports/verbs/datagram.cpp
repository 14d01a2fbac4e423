// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/datagram.h"

#include <cstring>

namespace weft::verbs {
namespace {

constexpr std::uint32_t kBits24 = 0xffffff;  // of numbers and sequences

bool makesSense(const Word& word) {
  switch (word.kind) {
    case Word::Ping:
    case Word::Pong:
      return true;
    case Word::Offer:
      return word.mine.known();
    case Word::Refusal:
      return word.theirs.known();
  }
  return false;
}

bool fits(const Endpoint& endpoint) {
  return endpoint.number <= kBits24 && endpoint.sequence <= kBits24;
}

}  // namespace

bool readDatagram(std::span<const std::byte> bytes, PortId at, std::uint64_t secret,
                  Datagram* out) {
  if (bytes.size() != sizeof(Datagram)) return false;
  std::memcpy(out, bytes.data(), sizeof(Datagram));
  return out->magic == Datagram().magic && out->secret == secret && out->to == at &&
         out->from.rank != at.rank && makesSense(out->word) && fits(out->word.mine) &&
         fits(out->word.theirs);
}

}  // namespace weft::verbs
