// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/root_service.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "bootstrap/fd_limit.h"
#include "bootstrap/lobby.h"
#include "bootstrap/service_threads.h"
#include "bootstrap/stream.h"

namespace weft {
namespace {

constexpr std::int64_t kGoodbyeMs = 300;

struct Connection {
  Stream stream;
  Meeting::Seat seat;
  bool open = true;
  bool ready = true;  // poll(2) has something, or nobody has asked it yet
};

Challenge introduction() {
  Challenge challenge;
  challenge.host = hostName();
  challenge.pid = static_cast<std::int32_t>(getpid());
  return challenge;
}

class RootService {
 public:
  RootService(std::vector<Socket> listeners, const Key& secret, const RootOptions& options)
      : options_(options),
        lobby_(std::move(listeners), secret, introduction(), options.handshakeMs),
        meeting_(options.timing),
        end_(Deadline::in(options.unusedMs)) {}

  void run(const StopSignal& stop) {
    while (!finished() && !(stop.raised() && handedOver())) {
      wait(stop);
      for (Lobby::Arrival& arrival : lobby_.serve()) seat(std::move(arrival));
      for (Connection& connection : connections_) {
        if (connection.ready) serve(connection);
      }
      meeting_.tick();
      deliver();
      std::erase_if(connections_, [](const Connection& c) { return !c.open; });
    }
  }

 private:
  bool finished() const;
  bool handedOver();
  void wait(const StopSignal& stop);
  Deadline nextWake() const;
  void serve(Connection& connection);
  void handle(Connection& connection, const Message& message);
  void seat(Lobby::Arrival arrival);
  void drop(Connection& connection);
  void deliver();

  RootOptions options_;
  Lobby lobby_;
  Meeting meeting_;
  Deadline end_;                     // while nobody is here
  std::optional<Deadline> goodbye_;  // set once the process exits
  std::list<Connection> connections_;
};

bool RootService::finished() const {
  if (meeting_.empty()) return end_.expired();
  const bool nobodyHere = connections_.empty();
  if (meeting_.verdict().ok()) return meeting_.complete() && nobodyHere;
  return end_.expired() || (nobodyHere && meeting_.everybodyCame());
}

// Nobody waits for bytes that are queued here, and nobody is still to come who should hear why the
// meeting failed; or not for long enough to hold up an exiting process.
bool RootService::handedOver() {
  if (!goodbye_) goodbye_ = Deadline::in(kGoodbyeMs);
  if (goodbye_->expired()) return true;
  return (meeting_.verdict().ok() || meeting_.everybodyCame()) &&
         std::all_of(connections_.begin(), connections_.end(),
                     [](Connection& c) { return c.stream.channel().pending().empty(); });
}

Deadline RootService::nextWake() const {
  Deadline wake = meeting_.nextTick().orSooner(lobby_.nextWake());
  if (meeting_.empty() || !meeting_.verdict().ok()) wake = wake.orSooner(end_);
  if (goodbye_) wake = wake.orSooner(*goodbye_);
  return wake;
}

// Sleeps until a socket or the clock has something for us.
void RootService::wait(const StopSignal& stop) {
  std::vector<pollfd> entries;
  if (!stop.raised()) entries.push_back({stop.fd(), POLLIN, 0});
  lobby_.addTo(&entries);
  for (Connection& connection : connections_) {
    const bool writes = !connection.stream.channel().pending().empty();
    entries.push_back({connection.stream.socket().fd(),
                       static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
  }
  const std::size_t others = entries.size() - connections_.size();
  const int ready = poll(entries.data(), entries.size(), nextWake().pollTimeoutMs());
  auto entry = entries.begin() + static_cast<std::ptrdiff_t>(others);
  for (Connection& connection : connections_)
    connection.ready = ready > 0 && (entry++)->revents != 0;
}

void RootService::serve(Connection& connection) {
  const bool alive = connection.stream.fill();
  while (connection.open) {
    std::optional<Message> message;
    const Status read = connection.stream.channel().next(&message);
    if (!read.ok()) return drop(connection);
    if (!message) break;
    handle(connection, *message);
  }
  if (connection.open && (!alive || !connection.stream.flush())) drop(connection);
}

void RootService::handle(Connection& connection, const Message& message) {
  GatherMessage part;
  Status failure;
  if (message.type == MessageType::Bye) {
    meeting_.leave(connection.seat);
  } else if (message.type == MessageType::Gather && decode(message.body, &part)) {
    meeting_.gather(connection.seat, std::move(part));
  } else if (message.type == MessageType::Failed && decode(message.body, &failure)) {
    meeting_.fail(connection.seat, failure);
  }
}

void RootService::seat(Lobby::Arrival arrival) {
  if (meeting_.complete()) return;
  const auto ranks = static_cast<std::uint64_t>(std::max(arrival.guest.member.hello.size, 1));
  const bool first = meeting_.empty();
  const Deadline patience = Deadline::in(arrival.guest.patienceMs);
  const Meeting::Seat seat = meeting_.join(std::move(arrival.guest.member), patience);
  connections_.push_back({std::move(arrival.stream), seat});
  if (!meeting_.verdict().ok()) {  // it may have been told to the others long ago
    connections_.back().stream.channel().send(MessageType::Verdict, encode(meeting_.verdict()));
    end_ = Deadline::in(options_.lingerMs);
  } else if (first) {
    const Status room = reserveFds(ranks + kMaxStrangers);
    if (!room.ok()) meeting_.fail(seat, room);
  }
}

void RootService::drop(Connection& connection) {
  connection.open = false;
  meeting_.lose(connection.seat);
}

void RootService::deliver() {
  // Closed before anybody hears that we are complete: the next meeting may want the same address.
  if (meeting_.complete()) lobby_.close();
  while (auto broadcast = meeting_.takeBroadcast()) {
    for (Connection& connection : connections_) {
      if (!connection.open) continue;
      connection.stream.channel().send(broadcast->type, broadcast->body);
    }
    if (broadcast->type == MessageType::Verdict) end_ = Deadline::in(options_.lingerMs);
  }
  for (Connection& connection : connections_) {
    if (connection.open && !connection.stream.flush()) drop(connection);
  }
}

}  // namespace

Status startRoot(std::vector<Socket> listeners, const Key& secret, const RootOptions& options) {
  auto service = std::make_shared<RootService>(std::move(listeners), secret, options);
  return ServiceThreads::get().start("weft-root",
                                     [service](const StopSignal& stop) { service->run(stop); });
}

}  // namespace weft
