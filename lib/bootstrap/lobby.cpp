// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/lobby.h"

#include <algorithm>
#include <utility>

#include "bootstrap/fd_limit.h"
#include "bootstrap/root_service.h"

namespace weft {
namespace {

constexpr std::int64_t kForeverMs = std::int64_t{24} * 3600 * 1000;

}  // namespace

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
  for (const Visitor& visitor : visitors_)
    entries->push_back({visitor.stream.socket().fd(), POLLIN, 0});
}

Deadline Lobby::nextWake() const {
  Deadline wake = acceptAgain_.value_or(Deadline::in(kForeverMs));
  for (const Visitor& visitor : visitors_) {
    if (visitor.stranger()) wake = wake.orSooner(visitor.limit);
  }
  return wake;
}

std::vector<Lobby::Arrival> Lobby::serve() {
  acceptWaiting();
  std::vector<Arrival> arrivals;
  for (Visitor& visitor : visitors_) {
    serve(visitor);
    if (!visitor.guest) continue;
    visitor.open = false;
    arrivals.push_back({std::move(visitor.stream), std::move(*visitor.guest)});
  }
  std::erase_if(visitors_, [](const Visitor& s) { return !s.open; });
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
        // Ranks that are threads of this process may have taken the last descriptors before the
        // first of them could be let in. Where the hard limit is reached, only waiting helps.
        (void)reserveFds(kMaxStrangers);
        acceptAgain_ = Deadline::in(20);
      }
      if (!socket) break;
      makeRoom();
      visitors_.push_back({Stream(std::move(socket)), peer, Deadline::in(handshakeMs_),
                           Admission(secret_, introduction_), std::nullopt});
    }
  }
}

// Drops the oldest stranger once there are too many; rather one that has not even named our secret.
void Lobby::makeRoom() {
  if (std::ranges::count_if(visitors_, &Visitor::stranger) < std::ptrdiff_t{kMaxStrangers}) return;
  auto victim =
      std::ranges::find_if(visitors_, [](const Visitor& v) { return !v.admission.knowsOurId(); });
  if (victim == visitors_.end()) victim = std::ranges::find_if(visitors_, &Visitor::stranger);
  drop(*victim, "too many at once");
  visitors_.erase(victim);
}

void Lobby::serve(Visitor& visitor) {
  const bool alive = visitor.stream.fill();
  while (!visitor.guest) {
    std::optional<Message> message;
    const Status read = visitor.stream.channel().next(&message);
    if (!read.ok()) return drop(visitor, read.text());
    if (!message) break;
    const Status admitted =
        visitor.admission.handle(*message, &visitor.stream.channel(), &visitor.guest);
    if (!admitted.ok()) return drop(visitor, admitted.text());
  }
  if (visitor.guest) return;
  if (!alive || !visitor.stream.flush()) return drop(visitor, "it closed the connection");
  if (visitor.stranger() && visitor.limit.expired())
    drop(visitor, "it did not finish the handshake");
}

void Lobby::drop(Visitor& visitor, std::string_view why) {
  visitor.open = false;
  (void)visitor.stream.flush();  // a refusal may be waiting
  log_.note(visitor.peer, visitor.stream.channel().unread(), why);
}

void Lobby::close() {
  listeners_.clear();
  visitors_.clear();
  log_.report();
}

}  // namespace weft
