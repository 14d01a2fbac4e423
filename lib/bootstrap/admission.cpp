// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/admission.h"

#include <unistd.h>

#include <algorithm>

#include "base/log.h"

namespace weft::bootstrap {
namespace {

// What a rank may send in one message after the handshake: its Info, or its part of a round.
constexpr std::size_t kMaxFromRank = net::Channel::kMaxFrameAfter;

// Patience assumed for a rank whose Info we cannot read.
constexpr std::int64_t kUnknownPatienceMs = 120000;

Status foreign(std::string_view why) { return Status::error(Code::RemoteError, std::string(why)); }

bool overlap(WireRange a, WireRange b) { return std::max(a.min, b.min) <= std::min(a.max, b.max); }

}  // namespace

Status Admission::handle(const net::Message& message, net::Channel* channel,
                         std::optional<Member>* admitted) {
  switch (stage_) {
    case Stage::Hello:
      return handleHello(message, channel);
    case Stage::Proof:
      return handleProof(message, channel, admitted);
    case Stage::Info:
      return handleInfo(message, admitted);
  }
  return {};
}

Status Admission::handleHello(const net::Message& message, net::Channel* channel) {
  if (message.type != net::MessageType::Hello || !decode(message.body, &hello_))
    return foreign("no valid hello");
  if (!net::equalInConstantTime(hello_.tag, idTag(secret_))) {
    channel->send(net::MessageType::Refusal, net::Bytes());
    return foreign("it holds another unique id or secret");
  }
  helloBytes_ = message.body;
  Challenge challenge;
  challenge.host = hostName();
  challenge.pid = getpid();
  WEFT_TRY(net::randomBytes(challenge.nonce));
  challenge.proof = rootProof(secret_, helloBytes_, challenge);
  challengeBytes_ = encode(challenge);
  channel->send(net::MessageType::Challenge, challengeBytes_);
  stage_ = Stage::Proof;
  return {};
}

Status Admission::handleProof(const net::Message& message, net::Channel* channel,
                              std::optional<Member>* admitted) {
  const net::Digest expected = rankProof(secret_, helloBytes_, challengeBytes_);
  if (message.type != net::MessageType::Proof ||
      !net::equalInConstantTime(message.body, expected)) {
    channel->send(net::MessageType::Refusal, net::Bytes());
    return foreign("its proof of the secret is wrong");
  }
  const SessionKeys keys = sessionKeys(secret_, helloBytes_, challengeBytes_);
  channel->secure(keys.toRank, keys.toRoot, kMaxFromRank);
  channel->send(net::MessageType::Welcome, net::Bytes());
  stage_ = Stage::Info;
  if (!overlap(hello_.wire, WireRange()))
    *admitted = Member{hello_, {{hello_.rank, ""}, "", kUnknownPatienceMs}};
  return {};
}

Status Admission::handleInfo(const net::Message& message, std::optional<Member>* admitted) {
  InfoMessage info;
  if (message.type != net::MessageType::Info || !decode(message.body, &info))
    return foreign("no valid info");
  info.who.rank = hello_.rank;
  *admitted = Member{hello_, std::move(info)};
  return {};
}

}  // namespace weft::bootstrap
