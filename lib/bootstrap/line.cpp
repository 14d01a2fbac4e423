// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/line.h"

#include <algorithm>

#include "bootstrap/rendezvous.h"
#include "bootstrap/root_service.h"

namespace weft::bootstrap {
namespace {

// Good-byes are small; a root that does not take one is dead, and its kernel tells it that we left.
constexpr std::int64_t kByeMs = 100;

}  // namespace

Line::Line(std::unique_ptr<net::Stream> stream, int rank, std::string rootName,
           std::chrono::milliseconds silence)
    : stream_(std::move(stream)), rank_(rank), silence_(silence), hub_{{}, std::move(rootName)} {}

Line Line::direct(std::unique_ptr<net::Stream> stream, int rank, std::string rootName) {
  return {std::move(stream), rank, std::move(rootName), std::chrono::milliseconds(0)};
}

Line Line::throughHub(std::unique_ptr<net::Stream> stream, int rank,
                      std::chrono::milliseconds silence) {
  return {std::move(stream), rank, "unknown", silence};
}

// Before it is asked, and after: in all at most half of what is left.
Deadline Line::silenceUntil(Deadline deadline) const {
  return Deadline::in(std::min<Deadline::Clock::duration>(deadline.remaining() / 4, silence_));
}

Status Line::ask(net::MessageType type, net::Bytes body, net::MessageType answerType,
                 Deadline deadline, net::Bytes* answer) {
  stream_->tell(type, std::move(body), deadline);
  return hear(answerType, deadline, answer);
}

Status Line::waitOn(net::MessageType answerType, Deadline deadline, net::Bytes* answer) {
  isLast_ = true;
  return hear(answerType, deadline, answer);
}

Status Line::hear(net::MessageType answerType, Deadline deadline, net::Bytes* answer) {
  net::Message message{};
  const Status received = await(deadline, &message);
  if (received.ok()) met_ = true;
  cut_ = !received.ok() && received.code() != Code::Timeout;
  Status result = read(received, message, answerType);
  *answer = std::move(message.body);
  return result;
}

// A hub that says nothing is asked whether it lives.
Status Line::await(Deadline deadline, net::Message* message) {
  if (!throughHub()) return stream_->awaitMessage(deadline, message);
  silentHub_ = false;
  Deadline check = silenceUntil(deadline);
  for (bool asked = false;;) {
    const Status received = stream_->awaitMessage(check, message);
    const bool late = received.code() == Code::Timeout;
    if (received.ok() && message->type == net::MessageType::Relayed) {
      (void)decode(message->body, &hub_);
      asked = silentHub_ = false;
    } else if (received.ok() || !late || deadline.expired()) {
      lostHub_ = !met_ && !received.ok() && !late;
      return received;
    } else if (asked) {
      silentHub_ = true;
      if ((lostHub_ = !met_ && !isLast_)) return received;
    } else {
      asked = true;
      stream_->channel().send(net::MessageType::Query, net::Bytes());
      (void)stream_->flush();
    }
    check = silentHub_ ? deadline : silenceUntil(deadline);
  }
}

Status Line::heard() {
  net::Message message{};
  const Status received = await(Deadline::in(0), &message);
  if (received.code() == Code::Timeout) return {};
  return read(received, message, net::MessageType::Error);
}

Status Line::read(const Status& received, const net::Message& message,
                  net::MessageType expected) const {
  if (received.code() == Code::Timeout)
    return Status::error(
        {.code = Code::Timeout,
         .who = silentHub_ ? hub_.who : PeerName(),
         .what = text("rank ", rank_, " heard nothing from ",
                      silentHub_ ? "{who}, which connects its host to" : "", silentHub_ ? " " : "",
                      "the bootstrap root (", hub_.root, ") by its deadline."),
         .fix = "check that process and host"});
  if (!received.ok())
    return throughHub() ? rankIsLost(hub_.who) : rootIsLost(hub_.root, received.text());
  Status said;
  if (message.type == net::MessageType::Error && decode(message.body, &said)) return said;
  return message.type == expected
             ? Status()
             : Status::error(Code::InternalError, "unexpected bootstrap message");
}

void Line::say(net::MessageType type, net::Bytes body) {
  stream_->channel().send(type, std::move(body));
  (void)stream_->awaitFlushed(Deadline::in(kByeMs));
}

}  // namespace weft::bootstrap
