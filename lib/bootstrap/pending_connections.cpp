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
    : listeners_(std::move(listeners)), secret_(secret), handshakeMs_(handshakeMs) {}

void PendingConnections::addTo(std::vector<pollfd>* entries) const {
  if (!acceptAgain_)
    for (const net::Socket& listener : listeners_) entries->push_back({listener.fd(), POLLIN, 0});
  for (const Connection& connection : connections_)
    entries->push_back({connection.stream.socket().fd(), POLLIN, 0});
}

Deadline PendingConnections::nextWake() const {
  Deadline wake = acceptAgain_.value_or(Deadline::in(kForeverMs));
  for (const Connection& connection : connections_)
    if (connection.unauthenticated()) wake = wake.orSooner(connection.limit);
  return wake;
}

std::vector<PendingConnections::Authenticated> PendingConnections::serve() {
  acceptWaiting();
  std::vector<Authenticated> authenticated;
  for (Connection& connection : connections_) {
    serve(connection);
    if (!connection.admitted) continue;
    connection.open = false;
    authenticated.push_back({std::move(connection.stream), std::move(*connection.admitted)});
  }
  std::erase_if(connections_, [](const Connection& s) { return !s.open; });
  return authenticated;
}

void PendingConnections::acceptWaiting() {
  if (acceptAgain_ && !acceptAgain_->expired()) return;
  acceptAgain_.reset();
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
      }
      if (!socket) break;
      makeRoom();
      connections_.push_back({net::Stream(std::move(socket)), peer, Deadline::in(handshakeMs_),
                              Admission(secret_), std::nullopt});
    }
  }
}

// Drops the oldest unauthenticated connection once there are too many; rather one that has not even
// named our secret.
void PendingConnections::makeRoom() {
  if (std::ranges::count_if(connections_, &Connection::unauthenticated) <
      std::ptrdiff_t{kMaxUnauthenticated})
    return;
  auto victim = std::ranges::find_if(connections_,
                                     [](const Connection& v) { return !v.admission.knowsOurId(); });
  if (victim == connections_.end())
    victim = std::ranges::find_if(connections_, &Connection::unauthenticated);
  drop(*victim, "too many at once");
  connections_.erase(victim);
}

void PendingConnections::serve(Connection& connection) {
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
  connection.open = false;
  if (connection.admission.proven()) lost_.push_back(connection.admission.hello().rank);
  (void)connection.stream.flush();  // a refusal may be waiting
  log_.note(connection.peer, connection.stream.channel().unread(), why);
}

void PendingConnections::close() {
  listeners_.clear();
  connections_.clear();
  log_.report();
}

}  // namespace weft::bootstrap
