// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "bootstrap/crypto.h"
#include "bootstrap/rank_card.h"

namespace weft {

// What ranks and the root say to each other, in order:
//
//   rank -> root   Hello       who I claim to be; nonce; tag of the id
//   root -> rank   Challenge   nonce; proof that the root holds the id's secret    (or Refusal)
//   rank -> root   Proof       proof that the rank holds it
//   ---- from here on every frame is authenticated (channel.h) ----
//   root -> rank   Welcome     the proof was right; before this the rank may start
//                              all over                                            (or Refusal)
//   rank -> root   Card        the rank's card
//   root -> rank   Roster      all cards                                           (or Verdict)
//   rank -> root   Gather      one rank's part of a round                          (any number of
//   rounds) root -> rank   Gathered    all parts                                           (or
//   Verdict) rank -> root   Bye         I leave; or Failed: I cannot go on, tell everybody
//
// Hello to Welcome and Verdict never change, so that any two versions can at least agree that they
// differ.
enum class MessageType : std::uint8_t {
  Hello = 1,
  Challenge,
  Refusal,
  Proof,
  Welcome,
  Card,
  Roster,
  Verdict,
  Gather,
  Gathered,
  Bye,
  Failed,
  // Of the control link, control/bodies.h:
  Query,
  Report,
  Ended,
};

// The protocols after the handshake that this build speaks, a closed range.
struct WireRange {
  std::uint16_t min = 1;
  std::uint16_t max = 1;
  bool operator==(const WireRange&) const = default;
};

struct Hello {
  Nonce nonce{};
  Nonce tag{};  // idTag() of the secret: tells ids apart without showing anything of them
  std::int32_t rank = 0;
  std::int32_t size = 0;
  WireRange wire;
  std::string version;  // of libweft
};

struct Challenge {
  Nonce nonce{};
  Digest proof{};
  std::string host;  // the root's, for the ranks' error texts
  std::int32_t pid = 0;
};

struct CardMessage {
  RankCard card;                // rank and version are those of Hello and not sent again
  std::int64_t patienceMs = 0;  // until the rank's deadline
};

struct GatherMessage {
  std::uint32_t round = 0;
  std::int64_t patienceMs = 0;
  Bytes part;
};

Bytes encode(const Hello& hello);
bool decode(ByteView bytes, Hello* hello);

Bytes encode(const Challenge& challenge);
bool decode(ByteView bytes, Challenge* challenge);

Bytes encode(const CardMessage& message);
bool decode(ByteView bytes, CardMessage* message);

Bytes encode(const GatherMessage& message);
bool decode(ByteView bytes, GatherMessage* message);

// An error Status with its code (Verdict, Failed).
Bytes encode(const Status& error);
bool decode(ByteView bytes, Status* error);

// Cards without their configText, which is equal on all ranks once there is a roster.
Bytes encodeRoster(const std::vector<RankCard>& cards);
bool decodeRoster(ByteView bytes, std::size_t ranks, std::vector<RankCard>* cards);

Bytes encodeParts(const std::vector<Bytes>& parts);
bool decodeParts(ByteView bytes, std::size_t ranks, std::vector<Bytes>* parts);

// Upper bounds of the two tables for `ranks` ranks, known before a byte of them is read.
std::size_t maxRosterBytes(std::size_t ranks);
std::size_t maxPartsBytes(std::size_t ranks);

}  // namespace weft
