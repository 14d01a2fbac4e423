// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::verbs {

// A queue pair as its peer's must know it to connect to it.
struct Endpoint {
  std::uint32_t number = 0;    // 0: not known
  std::uint32_t sequence = 0;  // the first of its packets

  bool known() const { return number != 0; }
  bool operator==(const Endpoint&) const = default;
};

// What the ends of an edge tell each other beside the data path.
struct Word {
  enum Kind : std::uint32_t { Ping = 1, Pong, Offer, Refusal } kind = Ping;
  // Of offers and refusals: whose they are, and whom they have heard of.
  Endpoint mine = {}, theirs = {};
  std::uint32_t settled = 0;  // of an offer: it needs no answer
};

struct PortId {
  std::uint32_t rank = 0;
  std::uint32_t port = 0;  // of that rank
  bool operator==(const PortId&) const = default;
};

// A word on its way. Plain bytes; the same weft on all ranks, as the set-up has checked.
struct Datagram {
  std::uint32_t magic = 0x57464447;
  PortId from, to;
  std::uint32_t unused = 0;
  std::uint64_t secret = 0;  // of the port that it goes to
  Word word;
};

// What arrived at a port. False: not for that port, of no peer of this communicator, or no word.
bool readDatagram(std::span<const std::byte> bytes, PortId at, std::uint64_t secret, Datagram* out);

}  // namespace weft::verbs
