// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/lobby.h"

#include <algorithm>
#include <utility>

#include "bootstrap/fd_limit.h"
#include "bootstrap/root_service.h"

namespace weft {

Lobby::Lobby(std::vector<Socket> listeners, const Key& secret, const Challenge& introduction,
             std::int64_t handshakeMs)
    : listeners_(std::move(listeners)),
      secret_(secret),
      introduction_(introduction),
      handshakeMs_(handshakeMs) {}

void Lobby::addTo(std::vector<pollfd>* entries) const {
  if (!acceptAgain_) {
    for (const Socket& listener : listeners_) entries->push_back({listener.fd(), POLLIN, 0});
  }
  for (const Stranger& stranger : strangers_)
    entries->push_back({stranger.stream.socket().fd(), POLLIN, 0});
}

Deadline Lobby::nextWake() const {
  Deadline wake = acceptAgain_.value_or(Deadline::in(handshakeMs_));
  for (const Stranger& stranger : strangers_) wake = wake.orSooner(stranger.limit);
  return wake;
}

std::vector<Lobby::Arrival> Lobby::serve() {
  acceptWaiting();
  std::vector<Arrival> arrivals;
  for (Stranger& stranger : strangers_) {
    serve(stranger);
    if (!stranger.guest) continue;
    stranger.open = false;
    arrivals.push_back({std::move(stranger.stream), std::move(*stranger.guest)});
  }
  std::erase_if(strangers_, [](const Stranger& s) { return !s.open; });
  return arrivals;
}

void Lobby::acceptWaiting() {
  if (acceptAgain_ && !acceptAgain_->expired()) return;
  acceptAgain_.reset();
  for (const Socket& listener : listeners_) {
    // Bounded, so that a flood of strangers does not keep us from our members.
    for (std::size_t i = 0; i < kMaxStrangers; ++i) {
      Address peer;
      bool exhausted = false;
      Socket socket = acceptFrom(listener, &peer, &exhausted);
      if (exhausted) {
        (void)reserveFds(kMaxStrangers);
        acceptAgain_ = Deadline::in(20);
      }
      if (!socket) break;
      makeRoom();
      strangers_.push_back({Stream(std::move(socket)), peer, Deadline::in(handshakeMs_),
                            Admission(secret_, introduction_), std::nullopt});
    }
  }
}

// Drops the oldest stranger once there are too many; rather one that has not even named our secret.
void Lobby::makeRoom() {
  if (strangers_.size() < kMaxStrangers) return;
  auto victim =
      std::ranges::find_if(strangers_, [](const Stranger& s) { return !s.admission.knowsOurId(); });
  if (victim == strangers_.end()) victim = strangers_.begin();
  drop(*victim, "too many at once");
  strangers_.erase(victim);
}

void Lobby::serve(Stranger& stranger) {
  const bool alive = stranger.stream.fill();
  while (!stranger.guest) {
    std::optional<Message> message;
    const Status read = stranger.stream.channel().next(&message);
    if (!read.ok()) return drop(stranger, read.text());
    if (!message) break;
    const Status admitted =
        stranger.admission.handle(*message, &stranger.stream.channel(), &stranger.guest);
    if (!admitted.ok()) return drop(stranger, admitted.text());
  }
  if (stranger.guest) return;
  if (!alive || !stranger.stream.flush()) return drop(stranger, "it closed the connection");
  if (stranger.limit.expired()) drop(stranger, "it did not finish the handshake");
}

void Lobby::drop(Stranger& stranger, std::string_view why) {
  stranger.open = false;
  (void)stranger.stream.flush();  // a refusal may be waiting
  log_.note(stranger.peer, stranger.stream.channel().unread(), why);
}

void Lobby::close() {
  listeners_.clear();
  strangers_.clear();
  log_.report();
}

}  // namespace weft
