// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/max_ranks.h"
#include "base/peer_name.h"
#include "base/status.h"
#include "net/crypto.h"
#include "net/message_type.h"

namespace weft::bootstrap {

// What ranks and the root say to each other, in order:
//
//   rank -> root   Hello       who I claim to be; nonce; tag of the id
//   root -> rank   Challenge   nonce; proof that the root holds the id's secret    (or Refusal)
//   rank -> root   Proof       proof that the rank holds it
//   ---- from here on every frame is authenticated (channel.h) ----
//   root -> rank   Welcome     the proof was right; before this the rank may start
//                              all over                                            (or Refusal)
//   rank -> root   Info        the rank's name and configuration
//   root -> rank   Roster      all ranks' names                                    (or Error)
//   rank -> root   Gather      one rank's part of a round                          (any number of rounds)
//   root -> rank   Gathered    all parts                                           (or Error)
//   rank -> root   Bye         I leave; or Failed: I cannot go on, tell everybody
//
// Between a hub (host_hub.h) and the root, and a hub and its ranks, also:
//
//   hub -> root    Info        with kHubConfig; no rank, and gets no Roster of its own
//   hub -> root    Relayed     what its ranks say (hub_messages.h); Bye: those that are left leave
//   root -> hub    Relayed     how many of them have a seat, before a Roster that is for these
//   hub -> rank    Relayed     who the hub is: at first, and in answer to a Query
//
// Hello to Welcome and Error never change, so that any two versions can at least agree that they
// differ.

inline constexpr std::size_t kMaxHostBytes = 256;
inline constexpr std::size_t kMaxVersionBytes = 64;
inline constexpr std::size_t kMaxConfigBytes = 4096;
// One rank's part of an all-gather.
inline constexpr std::size_t kMaxPartBytes = 60 * 1024;

// The protocols after the handshake that this build speaks, a closed range.
struct WireRange {
  std::uint16_t min = 1;
  std::uint16_t max = 1;
  bool operator==(const WireRange&) const = default;
};

struct Hello {
  net::Nonce nonce{};
  net::Nonce tag{};  // idTag() of the secret: tells ids apart without showing anything of them
  std::int32_t rank = 0;
  std::int32_t size = 0;
  WireRange wire;
  std::string version;  // of libweft
};

struct Challenge {
  net::Nonce nonce{};
  net::Digest proof{};
  std::string host;  // the root's, for the ranks' error texts
  std::int32_t pid = 0;
};

struct InfoMessage {
  PeerName who;                 // its rank is that of Hello and not sent again
  std::string configText;       // "key=value;..." of everything that must agree on all ranks
  std::int64_t patienceMs = 0;  // until the rank's deadline
  bool returns = false;         // it may have a seat already, which it has lost its hub to
};

struct GatherMessage {
  std::uint32_t round = 0;
  std::int64_t patienceMs = 0;
  net::Bytes part;
};

net::Bytes encode(const Hello& hello);
bool decode(net::ByteView bytes, Hello* hello);

net::Bytes encode(const Challenge& challenge);
bool decode(net::ByteView bytes, Challenge* challenge);

net::Bytes encode(const InfoMessage& message);
bool decode(net::ByteView bytes, InfoMessage* message);

net::Bytes encode(const GatherMessage& message);
bool decode(net::ByteView bytes, GatherMessage* message);

// An error (Error, Failed).
net::Bytes encode(const Status& error);
bool decode(net::ByteView bytes, Status* error);

// The two tables that every rank gets (table.h).
net::Bytes encodeRoster(const std::vector<PeerName>& names);
bool decodeRoster(net::ByteView bytes, std::size_t ranks, std::vector<PeerName>* names);

net::Bytes encodeParts(const std::vector<net::Bytes>& parts);
bool decodeParts(net::ByteView bytes, std::size_t ranks, std::vector<net::Bytes>* parts);

// Upper bounds of the two tables for `ranks` ranks, known before a byte of them is read.
std::size_t maxRosterBytes(std::size_t ranks);
std::size_t maxPartsBytes(std::size_t ranks);

}  // namespace weft::bootstrap
