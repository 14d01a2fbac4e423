// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/root_service.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "base/threads.h"
#include "bootstrap/hub_messages.h"
#include "bootstrap/pending_connections.h"
#include "net/fd_limit.h"
#include "net/ready_set.h"
#include "net/service_threads.h"
#include "net/stream.h"

namespace weft::bootstrap {
namespace {

constexpr std::int64_t kGoodbyeMs = 300;

// Of a rank, or of the hub of some.
struct Connection {
  explicit Connection(net::Stream connected) : stream(std::move(connected)) {}

  net::Stream stream;
  std::optional<PeerName> hub;                         // the rank in whose process it is
  std::vector<std::optional<Rendezvous::Seat>> seats;  // by place; of a rank, its own
  bool open = true;
  bool left = false;  // has said good-bye for all of them
};

bool isOfThisProcess(const PeerName& who) {
  return who.pid == ::getpid() && who.host == hostName();
}

class RootService {
 public:
  RootService(std::vector<net::Socket> listeners, const net::Key& secret,
              const RootOptions& options)
      : options_(options),
        pending_(std::move(listeners), secret, options.handshakeMs),
        rendezvous_(options.timing),
        end_(Deadline::in(options.unusedMs)) {}

  Status isOpen() const {
    WEFT_TRY(pending_.isOpen());
    return ready_.isOpen();
  }
  // What fails here, as for want of memory, ends the rendezvous: all who are here are told, or see
  // at least that they lose us, and those who are still to come are told.
  void run(const net::StopSignal& stop) {
    const Status failure = withoutExceptions([&] { return serve(stop), Status(); });
    if (failure.ok()) return;
    rendezvous_.fail(within(here(), {-1, hostName()}, failure));
    deliver();
    pending_.dropAll();
    connections_.clear();
    ready_ = net::ReadySet();
    failedHere_ = true;
    serve(stop);
  }

 private:
  void serve(const net::StopSignal& stop) {
    while (!finished() && !(stop.raised() && handedOver())) {
      wait(stop);
      for (PendingConnections::Authenticated& joined : pending_.serve()) seat(std::move(joined));
      for (const std::int32_t rank : pending_.takeLost())
        if (!rendezvous_.complete()) rendezvous_.lose(PeerName{rank, ""});
      for (const std::uint64_t id : ready_.take()) serve(*reinterpret_cast<Connection*>(id));
      rendezvous_.tick();
      deliver();
      if (std::exchange(dropped_, false))
        std::erase_if(connections_, [](const Connection& c) { return !c.open; });
    }
  }
  bool finished() const;
  bool handedOver();
  void wait(const net::StopSignal& stop);
  Deadline nextWake() const;
  void serve(Connection& connection);
  void handle(Connection& connection, const net::Message& message);
  void hearHub(Connection& connection, const net::Message& message);
  void pass(Connection& connection, const Passed& passed);
  void hear(Rendezvous::Seat seat, const net::Message& message);
  void seat(PendingConnections::Authenticated joined);
  void join(Connection& connection, Member member);
  std::optional<Rendezvous::Seat> seatFor(Connection& connection, Member member);
  void flush(Connection& connection);
  void drop(Connection& connection);
  void send(Connection& connection, const Rendezvous::Broadcast& broadcast);
  void deliver();
  static std::string here() {
    return text("bootstrap root (host ", hostName(), ", pid ", ::getpid(), "): ");
  }

  RootOptions options_;
  PendingConnections pending_;
  Rendezvous rendezvous_;
  Deadline end_;                         // while nobody is here
  std::optional<Deadline> goodbye_;      // set once the process exits
  net::ReadySet ready_;                  // by the connection's address
  std::list<Connection> connections_;    // of this process last, as it may end once it has heard
  std::set<Rendezvous::Seat> returned_;  // of ranks that have lost their hub
  bool dropped_ = false;                 // some of them are closed
  bool failedHere_ = false;              // some of them may not know
};

bool RootService::finished() const {
  if (rendezvous_.empty()) return end_.expired();
  const bool nobodyHere = connections_.empty();
  if (rendezvous_.failure().ok()) return rendezvous_.complete() && nobodyHere;
  return end_.expired() || (nobodyHere && !failedHere_ && rendezvous_.everybodyCame());
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
  pollfd entries[] = {{pending_.fd(), POLLIN, 0},
                      {ready_.fd(), POLLIN, 0},
                      {stop.raised() ? -1 : stop.fd(), POLLIN, 0}};
  (void)::poll(entries, std::size(entries), nextWake().pollTimeoutMs());
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
  if (!alive) return drop(connection);
  flush(connection);
}

// What does not go now goes as soon as it can.
void RootService::flush(Connection& connection) {
  if (!connection.open) return;
  if (!connection.stream.flush()) return drop(connection);
  const bool writes = !connection.stream.channel().pending().empty();
  if (!ready_.watch(connection.stream.socket().fd(), reinterpret_cast<std::uint64_t>(&connection),
                    writes))
    drop(connection);
}

void RootService::handle(Connection& connection, const net::Message& message) {
  if (connection.hub) return hearHub(connection, message);
  for (const auto& seat : connection.seats)
    if (seat) hear(*seat, message);
}

void RootService::hearHub(Connection& connection, const net::Message& message) {
  std::vector<Passed> all;
  if (message.type == net::MessageType::Bye) {
    connection.left = true;
    for (const auto& seat : connection.seats)
      if (seat) rendezvous_.leave(*seat);
  } else if (message.type == net::MessageType::Relayed && decodePassed(message.body, &all)) {
    for (const Passed& passed : all) pass(connection, passed);
  }
}

void RootService::pass(Connection& connection, const Passed& passed) {
  Member member;
  std::uint32_t rank = 0;
  if (passed.type == net::MessageType::Info) {
    if (!rendezvous_.complete() && decode(passed.body, &member))
      join(connection, std::move(member));
  } else if (passed.place == kNobody && decodeNumber(passed.body, &rank)) {
    if (!rendezvous_.complete()) rendezvous_.lose(PeerName{static_cast<int>(rank), ""});
  } else if (passed.place < connection.seats.size() && connection.seats[passed.place]) {
    hear(*connection.seats[passed.place], {passed.type, passed.body});
  }
}

void RootService::hear(Rendezvous::Seat seat, const net::Message& message) {
  GatherMessage part;
  Status failure;
  if (message.type == net::MessageType::Bye) {
    rendezvous_.leave(seat);
  } else if (message.type == net::MessageType::Ended) {
    rendezvous_.lose(seat);
  } else if (message.type == net::MessageType::Gather && decode(message.body, &part)) {
    rendezvous_.gather(seat, std::move(part));
  } else if (message.type == net::MessageType::Failed && decode(message.body, &failure)) {
    rendezvous_.fail(seat, failure);
  }
}

void RootService::seat(PendingConnections::Authenticated joined) {
  if (rendezvous_.complete()) return;
  Connection& connection = *connections_.emplace(
      isOfThisProcess(joined.member.info.who) ? connections_.end() : connections_.begin(),
      std::move(joined.stream));
  if (joined.member.info.configText == kHubConfig)
    connection.hub = std::move(joined.member.info.who);
  else
    join(connection, std::move(joined.member));
  serve(connection);
}

void RootService::join(Connection& connection, Member member) {
  const auto ranks = static_cast<std::uint64_t>(std::max(member.hello.size, 1));
  const bool first = rendezvous_.empty();
  connection.seats.push_back(seatFor(connection, std::move(member)));
  if (!rendezvous_.failure().ok()) {  // it may have been told to the others long ago
    connection.stream.channel().send(net::MessageType::Error, encode(rendezvous_.failure()));
    end_ = Deadline::in(options_.lingerMs);
  } else if (first) {
    const Status room = net::reserveFds(ranks + kMaxUnauthenticated);
    if (!room.ok()) rendezvous_.fail(within(here(), {-1, hostName()}, room));
  }
}

// A rank that has lost its hub takes its seat along, and what the hub still has of it is void.
std::optional<Rendezvous::Seat> RootService::seatFor(Connection& connection, Member member) {
  const bool returns = member.info.returns;
  if (returns || (connection.hub && !returned_.empty())) {
    const auto known = rendezvous_.seatOf(member.info.who);
    if (known && !returns && returned_.contains(*known)) return std::nullopt;
    if (known && returns) {
      for (Connection& other : connections_) std::ranges::replace(other.seats, known, std::nullopt);
      returned_.insert(*known);
      return known;
    }
  }
  if (connection.hub) member.hub = connection.hub->rank;
  const Rendezvous::Seat seat = rendezvous_.join(std::move(member));
  if (returns) returned_.insert(seat);
  return seat;
}

void RootService::drop(Connection& connection) {
  if (!std::exchange(connection.open, false)) return;
  dropped_ = true;
  ready_.remove(connection.stream.socket().fd());
  if (connection.hub && !connection.left) rendezvous_.lose(*connection.hub);
  for (const auto& seat : connection.seats)
    if (seat && !connection.hub) rendezvous_.lose(*seat);
}

void RootService::send(Connection& connection, const Rendezvous::Broadcast& broadcast) {
  if (!connection.open) return;
  net::Channel& channel = connection.stream.channel();
  if (connection.hub && broadcast.type == net::MessageType::Roster)
    channel.send(net::MessageType::Relayed,
                 encodeNumber(static_cast<std::uint32_t>(connection.seats.size())));
  channel.send(broadcast.type, broadcast.body);
}

void RootService::deliver() {
  // Closed before anybody hears that we are complete: the next rendezvous may want the same
  // address.
  if (rendezvous_.complete()) pending_.close();
  bool told = false;
  for (; auto broadcast = rendezvous_.takeBroadcast(); told = true) {
    for (Connection& connection : connections_) send(connection, *broadcast);
    if (broadcast->type == net::MessageType::Error) end_ = Deadline::in(options_.lingerMs);
  }
  if (!told) return;
  for (Connection& connection : connections_) flush(connection);
}

}  // namespace

Status rootIsLost(std::string_view name, std::string_view how) {
  return Status::error(Code::RemoteError, "the communicator's bootstrap root (", name,
                       ") died or closed: ", how, ". fix: see what ended that process");
}

Status startRoot(std::vector<net::Socket> listeners, const net::Key& secret,
                 const RootOptions& options) {
  auto service = std::make_shared<RootService>(std::move(listeners), secret, options);
  WEFT_TRY(service->isOpen());
  return net::ServiceThreads::get().start(
      "weft-root", [service](const net::StopSignal& stop) { service->run(stop); });
}

}  // namespace weft::bootstrap
