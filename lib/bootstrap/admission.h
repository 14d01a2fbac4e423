// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/status.h"
#include "bootstrap/conflicts.h"
#include "bootstrap/handshake.h"
#include "net/channel.h"

namespace weft::bootstrap {

// The root's half of the handshake with one connection, up to a member with its Info. No I/O.
class Admission {
 public:
  explicit Admission(const net::Key& secret) : secret_(secret) {}

  // Takes one message and answers over the channel. Sets *admitted once the rank has proved itself
  // and introduced itself fully. An error: not one of ours, and why.
  Status handle(const net::Message& message, net::Channel* channel,
                std::optional<Member>* admitted);

  // Its first message named our id, so it is worth more patience than others.
  bool knowsOurId() const { return stage_ != Stage::Hello; }
  const Hello& hello() const { return hello_; }
  // It has proved to hold the secret; only its Info is missing.
  bool proven() const { return stage_ == Stage::Info; }

 private:
  enum class Stage { Hello, Proof, Info };
  Status handleHello(const net::Message& message, net::Channel* channel);
  Status handleProof(const net::Message& message, net::Channel* channel,
                     std::optional<Member>* admitted);
  Status handleInfo(const net::Message& message, std::optional<Member>* admitted);

  net::Key secret_;
  Stage stage_ = Stage::Hello;
  Hello hello_;
  net::Bytes helloBytes_, challengeBytes_;
};

}  // namespace weft::bootstrap
