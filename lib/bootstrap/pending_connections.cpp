// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/pending_connections.h"

#include <algorithm>
#include <utility>

#include "base/mark.h"
#include "bootstrap/root_service.h"
#include "net/fd_limit.h"

namespace weft::bootstrap {
namespace {

constexpr std::int64_t kForeverMs = std::int64_t{24} * 3600 * 1000;

}  // namespace

PendingConnections::PendingConnections(std::vector<net::Socket> listeners, const net::Key& secret,
                                       std::int64_t handshakeMs)
    : listeners_(std::move(listeners)), secret_(secret), handshakeMs_(handshakeMs) {
  listen(true);
}

void PendingConnections::listen(bool now) {
  for (const net::Socket& listener : listeners_)
    if (now)
      (void)ready_.watch(listener.fd(), 0);
    else
      ready_.remove(listener.fd());
}

Deadline PendingConnections::nextWake() const {
  Deadline wake = acceptAgain_.value_or(Deadline::in(kForeverMs));
  for (const Connection& connection : connections_)
    if (connection.unauthenticated()) wake = wake.orSooner(connection.limit);
  return wake;
}

// Reads those that have something to be read; the others may have waited for too long.
std::vector<PendingConnections::Authenticated> PendingConnections::serve() {
  bool somebodyWaits = acceptAgain_.has_value();
  for (const std::uint64_t id : ready_.take())
    if (id == 0)
      somebodyWaits = true;
    else
      reinterpret_cast<Connection*>(id)->ready = true;
  if (somebodyWaits) acceptWaiting();
  std::vector<Authenticated> authenticated;
  for (Connection& connection : connections_) {
    if (connection.ready || (connection.unauthenticated() && connection.limit.expired()))
      serve(connection);
    if (!connection.admitted) continue;
    end(connection);
    authenticated.push_back({std::move(connection.stream), std::move(*connection.admitted)});
  }
  std::erase_if(connections_, [](const Connection& s) { return !s.open; });
  return authenticated;
}

// Before its descriptor goes elsewhere.
void PendingConnections::end(Connection& connection) {
  connection.open = false;
  ready_.remove(connection.stream.socket().fd());
}

void PendingConnections::acceptWaiting() {
  if (acceptAgain_ && !acceptAgain_->expired()) return;
  if (std::exchange(acceptAgain_, std::nullopt)) listen(true);
  for (const net::Socket& listener : listeners_) {
    // Bounded, so that a flood of connections does not keep us from our members.
    for (std::size_t i = 0; i < kMaxUnauthenticated; ++i) {
      net::Address peer;
      bool exhausted = false;
      net::Socket socket = net::acceptFrom(listener, &peer, &exhausted);
      if (exhausted && WEFT_MARK("accept later")) {
        // Ranks that are threads of this process may have taken the last descriptors before the
        // first of them could be let in. Where the hard limit is reached, only waiting helps.
        (void)net::reserveFds(kMaxUnauthenticated);
        acceptAgain_ = Deadline::in(20);
        listen(false);
      }
      if (!socket) break;
      makeRoom();
      connections_.push_back({net::Stream(std::move(socket)), peer, Deadline::in(handshakeMs_),
                              Admission(secret_), std::nullopt});
      (void)ready_.watch(connections_.back().stream.socket().fd(),
                         reinterpret_cast<std::uint64_t>(&connections_.back()));
    }
  }
}

// Drops the oldest stranger once there are too many, and the oldest of those who have named our
// secret once there are too many of them: all ranks of a job may come at once.
void PendingConnections::makeRoom() {
  for (const bool named : {false, true}) {
    const auto isOne = [named](const Connection& c) {
      return c.unauthenticated() && c.admission.knowsOurId() == named;
    };
    const auto most = static_cast<std::ptrdiff_t>(named ? kMaxNamed : kMaxUnauthenticated);
    if (std::ranges::count_if(connections_, isOne) < most) continue;
    const auto victim = std::ranges::find_if(connections_, isOne);
    drop(*victim, "too many at once");
    connections_.erase(victim);
  }
}

void PendingConnections::serve(Connection& connection) {
  connection.ready = false;
  const bool alive = connection.stream.fill();
  while (!connection.admitted) {
    std::optional<net::Message> message;
    const Status read = connection.stream.channel().next(&message);
    if (!read.ok()) return drop(connection, read.text());
    if (!message) break;
    const Status admitted =
        connection.admission.handle(*message, &connection.stream.channel(), &connection.admitted);
    if (!admitted.ok()) return drop(connection, admitted.text());
  }
  if (connection.admitted) return;
  if (!alive || !connection.stream.flush()) return drop(connection, "it closed the connection");
  if (connection.unauthenticated() && connection.limit.expired())
    drop(connection, "it did not finish the handshake");
}

void PendingConnections::drop(Connection& connection, std::string_view why) {
  end(connection);
  if (connection.admission.proven()) lost_.push_back(connection.admission.hello().rank);
  (void)connection.stream.flush();  // a refusal may be waiting
  log_.note(connection.peer, connection.stream.channel().unread(), why);
}

void PendingConnections::dropAll() {
  for (Connection& connection : connections_) end(connection);
  connections_.clear();
}

void PendingConnections::close() {
  listen(false);
  listeners_.clear();
  dropAll();
  log_.report();
}

}  // namespace weft::bootstrap
