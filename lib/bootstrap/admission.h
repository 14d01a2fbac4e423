// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "bootstrap/channel.h"
#include "bootstrap/conflicts.h"
#include "bootstrap/handshake.h"

namespace weft {

// The root's half of the handshake with one connection, up to a member with its card. No I/O.
class Admission {
 public:
  Admission(const Key& secret, const Challenge& introduction)
      : secret_(secret), challenge_(introduction) {}

  struct Guest {
    Member member;
    std::int64_t patienceMs = 0;
  };
  // Takes one message and answers over the channel. Sets *guest once the rank has proved itself and
  // introduced itself fully. An error: not one of ours, and why.
  Status handle(const Message& message, Channel* channel, std::optional<Guest>* guest);

  // Its first message named our id, so it is worth more patience than any stranger.
  bool knowsOurId() const { return stage_ != Stage::Hello; }
  // It has proved to hold the secret; only its card is missing.
  bool proven() const { return stage_ == Stage::Card; }

 private:
  enum class Stage { Hello, Proof, Card };
  Status handleHello(const Message& message, Channel* channel);
  Status handleProof(const Message& message, Channel* channel, std::optional<Guest>* guest);
  Status handleCard(const Message& message, std::optional<Guest>* guest);

  Key secret_;
  Challenge challenge_;
  Stage stage_ = Stage::Hello;
  Hello hello_;
  Bytes helloBytes_, challengeBytes_;
};

}  // namespace weft
