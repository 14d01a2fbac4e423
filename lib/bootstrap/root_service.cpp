// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/root_service.h"

#include <poll.h>

#include <algorithm>
#include <list>
#include <memory>
#include <utility>

#include "bootstrap/pending_connections.h"
#include "net/fd_limit.h"
#include "net/service_threads.h"
#include "net/stream.h"

namespace weft::bootstrap {
namespace {

constexpr std::int64_t kGoodbyeMs = 300;

struct Connection {
  net::Stream stream;
  Rendezvous::Seat seat;
  bool open = true;
  bool ready = true;  // poll(2) has something, or nobody has asked it yet
};

class RootService {
 public:
  RootService(std::vector<net::Socket> listeners, const net::Key& secret,
              const RootOptions& options)
      : options_(options),
        pending_(std::move(listeners), secret, options.handshakeMs),
        rendezvous_(options.timing),
        end_(Deadline::in(options.unusedMs)) {}

  void run(const net::StopSignal& stop) {
    while (!finished() && !(stop.raised() && handedOver())) {
      wait(stop);
      for (PendingConnections::Authenticated& joined : pending_.serve()) seat(std::move(joined));
      for (const std::int32_t rank : pending_.takeLost())
        if (!rendezvous_.complete()) rendezvous_.lose(PeerName{rank, ""});
      for (Connection& connection : connections_)
        if (connection.ready) serve(connection);
      rendezvous_.tick();
      deliver();
      std::erase_if(connections_, [](const Connection& c) { return !c.open; });
    }
  }

 private:
  bool finished() const;
  bool handedOver();
  void wait(const net::StopSignal& stop);
  Deadline nextWake() const;
  void serve(Connection& connection);
  void handle(Connection& connection, const net::Message& message);
  void seat(PendingConnections::Authenticated joined);
  void drop(Connection& connection);
  void deliver();

  RootOptions options_;
  PendingConnections pending_;
  Rendezvous rendezvous_;
  Deadline end_;                     // while nobody is here
  std::optional<Deadline> goodbye_;  // set once the process exits
  std::list<Connection> connections_;
};

bool RootService::finished() const {
  if (rendezvous_.empty()) return end_.expired();
  const bool nobodyHere = connections_.empty();
  if (rendezvous_.failure().ok()) return rendezvous_.complete() && nobodyHere;
  return end_.expired() || (nobodyHere && rendezvous_.everybodyCame());
}

// Nobody waits for bytes that are queued here, and nobody is still to come who should hear why the
// rendezvous failed; or not for long enough to hold up an exiting process.
bool RootService::handedOver() {
  if (!goodbye_) goodbye_ = Deadline::in(kGoodbyeMs);
  if (goodbye_->expired()) return true;
  return (rendezvous_.failure().ok() || rendezvous_.everybodyCame()) &&
         std::ranges::all_of(connections_,
                             [](Connection& c) { return c.stream.channel().pending().empty(); });
}

Deadline RootService::nextWake() const {
  Deadline wake = rendezvous_.nextTick().orSooner(pending_.nextWake());
  if (rendezvous_.empty() || !rendezvous_.failure().ok()) wake = wake.orSooner(end_);
  if (goodbye_) wake = wake.orSooner(*goodbye_);
  return wake;
}

// Sleeps until a socket or the clock has something for us.
void RootService::wait(const net::StopSignal& stop) {
  std::vector<pollfd> entries;
  if (!stop.raised()) entries.push_back({stop.fd(), POLLIN, 0});
  pending_.addTo(&entries);
  const std::size_t others = entries.size();
  for (Connection& connection : connections_) entries.push_back(connection.stream.pollEntry());
  const int ready = poll(entries.data(), entries.size(), nextWake().pollTimeoutMs());
  auto entry = entries.begin() + static_cast<std::ptrdiff_t>(others);
  for (Connection& connection : connections_)
    connection.ready = ready > 0 && (entry++)->revents != 0;
}

void RootService::serve(Connection& connection) {
  const bool alive = connection.stream.fill();
  while (connection.open) {
    std::optional<net::Message> message;
    const Status read = connection.stream.channel().next(&message);
    if (!read.ok()) return drop(connection);
    if (!message) break;
    handle(connection, *message);
  }
  if (connection.open && (!alive || !connection.stream.flush())) drop(connection);
}

void RootService::handle(Connection& connection, const net::Message& message) {
  GatherMessage part;
  Status failure;
  if (message.type == net::MessageType::Bye) {
    rendezvous_.leave(connection.seat);
  } else if (message.type == net::MessageType::Gather && decode(message.body, &part)) {
    rendezvous_.gather(connection.seat, std::move(part));
  } else if (message.type == net::MessageType::Failed && decode(message.body, &failure)) {
    rendezvous_.fail(connection.seat, failure);
  }
}

void RootService::seat(PendingConnections::Authenticated joined) {
  if (rendezvous_.complete()) return;
  const auto ranks = static_cast<std::uint64_t>(std::max(joined.member.hello.size, 1));
  const bool first = rendezvous_.empty();
  const Rendezvous::Seat seat = rendezvous_.join(std::move(joined.member));
  connections_.push_back({std::move(joined.stream), seat});
  if (!rendezvous_.failure().ok()) {  // it may have been told to the others long ago
    connections_.back().stream.channel().send(net::MessageType::Error,
                                              encode(rendezvous_.failure()));
    end_ = Deadline::in(options_.lingerMs);
  } else if (first) {
    const Status room = net::reserveFds(ranks + kMaxUnauthenticated);
    if (!room.ok()) rendezvous_.fail(seat, room);
  }
}

void RootService::drop(Connection& connection) {
  connection.open = false;
  rendezvous_.lose(connection.seat);
}

void RootService::deliver() {
  // Closed before anybody hears that we are complete: the next rendezvous may want the same
  // address.
  if (rendezvous_.complete()) pending_.close();
  while (auto broadcast = rendezvous_.takeBroadcast()) {
    for (Connection& connection : connections_)
      if (connection.open) connection.stream.channel().send(broadcast->type, broadcast->body);
    if (broadcast->type == net::MessageType::Error) end_ = Deadline::in(options_.lingerMs);
  }
  for (Connection& connection : connections_)
    if (connection.open && !connection.stream.flush()) drop(connection);
}

}  // namespace

Status startRoot(std::vector<net::Socket> listeners, const net::Key& secret,
                 const RootOptions& options) {
  auto service = std::make_shared<RootService>(std::move(listeners), secret, options);
  return net::ServiceThreads::get().start(
      "weft-root", [service](const net::StopSignal& stop) { service->run(stop); });
}

}  // namespace weft::bootstrap
