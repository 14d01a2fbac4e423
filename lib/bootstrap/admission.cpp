// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/admission.h"

#include <algorithm>

#include "base/text.h"

namespace weft {
namespace {

// What a rank may send in one message after the handshake: its card, or its part of a round.
constexpr std::size_t kMaxFromRank = Channel::kMaxFrameAfter;

// Of a rank whose card we cannot read.
constexpr std::int64_t kUnknownPatienceMs = 120000;

Status foreign(std::string_view why) { return Status::error(Code::RemoteError, std::string(why)); }

bool overlap(WireRange a, WireRange b) { return std::max(a.min, b.min) <= std::min(a.max, b.max); }

}  // namespace

Status Admission::handle(const Message& message, Channel* channel, std::optional<Guest>* guest) {
  switch (stage_) {
    case Stage::Hello:
      return handleHello(message, channel);
    case Stage::Proof:
      return handleProof(message, channel, guest);
    case Stage::Card:
      return handleCard(message, guest);
  }
  return {};
}

Status Admission::handleHello(const Message& message, Channel* channel) {
  if (message.type != MessageType::Hello || !decode(message.body, &hello_))
    return foreign("no valid hello");
  if (!equalInConstantTime(hello_.tag, idTag(secret_))) {
    channel->send(MessageType::Refusal, Bytes());
    return foreign("it holds another unique id or secret");
  }
  helloBytes_ = message.body;
  WEFT_TRY(randomBytes(challenge_.nonce));
  challenge_.proof = rootProof(secret_, helloBytes_, challenge_);
  challengeBytes_ = encode(challenge_);
  channel->send(MessageType::Challenge, challengeBytes_);
  stage_ = Stage::Proof;
  return {};
}

Status Admission::handleProof(const Message& message, Channel* channel,
                              std::optional<Guest>* guest) {
  const Digest expected = rankProof(secret_, helloBytes_, challengeBytes_);
  if (message.type != MessageType::Proof || !equalInConstantTime(message.body, expected)) {
    channel->send(MessageType::Refusal, Bytes());
    return foreign("its proof of the secret is wrong");
  }
  const SessionKeys keys = sessionKeys(secret_, helloBytes_, challengeBytes_);
  channel->secure(keys.toRank, keys.toRoot, kMaxFromRank);
  channel->send(MessageType::Welcome, Bytes());
  stage_ = Stage::Card;
  if (!overlap(hello_.wire, WireRange())) {
    *guest = Guest{{hello_, RankCard()}, kUnknownPatienceMs};
    (*guest)->member.card.rank = hello_.rank;
  }
  return {};
}

Status Admission::handleCard(const Message& message, std::optional<Guest>* guest) {
  CardMessage introduction;
  if (message.type != MessageType::Card || !decode(message.body, &introduction))
    return foreign("no valid card");
  introduction.card.rank = hello_.rank;
  introduction.card.version = hello_.version;
  *guest = Guest{{hello_, std::move(introduction.card)}, introduction.patienceMs};
  return {};
}

}  // namespace weft
