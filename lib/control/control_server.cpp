// SPDX-License-Identifier: Apache-2.0
#include "control/control_server.h"

#include <poll.h>

#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "bootstrap/pending_connections.h"
#include "control/bodies.h"
#include "control/control_state.h"
#include "control/link_socket.h"
#include "net/ready_set.h"
#include "net/service_threads.h"

namespace weft::control {
namespace {

constexpr std::int64_t kHandshakeMs = 2000;
constexpr std::int64_t kGoodbyeMs = 300;

class ControlServer {
 public:
  ControlServer(std::vector<net::Socket> listeners, const net::Key& secret,
                std::vector<PeerName> names, Deadline deadline)
      : opening_(deadline),
        pending_(std::in_place, std::move(listeners), secret, kHandshakeMs),
        streams_(names.size()),
        state_(std::move(names)) {}

  Status isOpen() const {
    WEFT_TRY(pending_->isOpen());
    return ready_.isOpen();
  }
  void run(const net::StopSignal& stop) {
    while (!finished() && !stop.raised()) turn(&stop, Deadline::in(kForeverMs));
    if (stop.raised()) sayGoodbye();
  }

 private:
  using Clock = ControlState::Clock;
  static constexpr std::int64_t kForeverMs = std::int64_t{24} * 3600 * 1000;

  bool finished() const;
  void turn(const net::StopSignal* stop, Deadline limit);
  void wait(const net::StopSignal* stop, Deadline limit);
  void letIn();
  void serve(std::uint32_t rank);
  void flush(std::uint32_t rank);
  void close(std::uint32_t rank);
  void handle(std::uint32_t rank, const net::Message& message);
  void lose(std::uint32_t rank);
  void deliver();
  void sayGoodbye();
  bool handedOver();

  const Deadline opening_;
  std::optional<bootstrap::PendingConnections> pending_;  // until everybody has come
  net::ReadySet ready_;                                   // by rank
  std::vector<std::optional<net::Stream>> streams_;
  ControlState state_;
};

bool ControlServer::finished() const {
  if (state_.everybodyCame()) return state_.nobodyHere();
  return opening_.expired() || state_.hasLeft(0);  // all ranks have given up
}

// `stop` is null once it has been raised.
void ControlServer::turn(const net::StopSignal* stop, Deadline limit) {
  wait(stop, limit);
  if (pending_) letIn();
  for (const std::uint64_t rank : ready_.take()) serve(static_cast<std::uint32_t>(rank));
  state_.tick(Clock::now());
  deliver();
}

// Sleeps until a socket or the clock has something for us.
void ControlServer::wait(const net::StopSignal* stop, Deadline limit) {
  pollfd entries[] = {{stop ? stop->fd() : -1, POLLIN, 0},
                      {ready_.fd(), POLLIN, 0},
                      {pending_ ? pending_->fd() : -1, POLLIN, 0}};
  if (pending_) limit = limit.orSooner(pending_->nextWake()).orSooner(opening_);
  if (const auto tick = state_.nextTick())
    limit = limit.orSooner(Deadline::in(*tick - Clock::now()));
  (void)::poll(entries, std::size(entries), limit.pollTimeoutMs());
}

void ControlServer::letIn() {
  for (bootstrap::PendingConnections::Authenticated& joined : pending_->serve()) {
    const auto rank = static_cast<std::uint32_t>(joined.member.hello.rank);
    if (rank >= streams_.size() || state_.hasCome(rank)) continue;
    streams_[rank].emplace(std::move(joined.stream));
    watchClosely(streams_[rank]->socket());
    state_.seat(rank);
    serve(rank);
  }
  if (state_.everybodyCame()) pending_.reset();
}

void ControlServer::serve(std::uint32_t rank) {
  if (!streams_[rank]) return;
  const bool alive = streams_[rank]->fill();
  while (streams_[rank]) {
    std::optional<net::Message> message;
    if (!streams_[rank]->channel().next(&message).ok()) return lose(rank);
    if (!message) break;
    handle(rank, *message);
  }
  if (streams_[rank] && !alive) return lose(rank);
  flush(rank);
}

// What does not go now goes as soon as it can.
void ControlServer::flush(std::uint32_t rank) {
  std::optional<net::Stream>& stream = streams_[rank];
  if (!stream) return;
  const bool flushed = stream->flush();
  const bool writes = !stream->channel().pending().empty();
  if (!flushed || !ready_.watch(stream->socket().fd(), rank, writes)) lose(rank);
}

void ControlServer::close(std::uint32_t rank) {
  ready_.remove(streams_[rank]->socket().fd());
  streams_[rank].reset();
}

void ControlServer::handle(std::uint32_t rank, const net::Message& message) {
  PageReport page;
  Status cause;
  if (message.type == net::MessageType::Query && decode(message.body, &page)) {
    state_.query(rank, page, Clock::now());
  } else if (message.type == net::MessageType::Report && decode(message.body, &page)) {
    state_.report(rank, page);
  } else if (message.type == net::MessageType::Failed && bootstrap::decode(message.body, &cause)) {
    state_.propose(cause);
  } else if (message.type == net::MessageType::Gather) {
    state_.gather(rank, message.body);
  } else if (message.type == net::MessageType::Bye) {
    state_.bye(rank, Clock::now());
    close(rank);
  }
}

void ControlServer::lose(std::uint32_t rank) {
  state_.lose(rank, lossOf(*streams_[rank]), Clock::now());
  close(rank);
}

void ControlServer::deliver() {
  std::vector<std::uint32_t> told;
  while (const auto out = state_.take()) {
    if (!streams_[out->rank]) continue;
    streams_[out->rank]->channel().send(out->type, out->body);
    told.push_back(out->rank);
  }
  for (const std::uint32_t rank : told) flush(rank);
}

bool ControlServer::handedOver() {
  for (std::optional<net::Stream>& stream : streams_)
    if (stream && !stream->channel().pending().empty()) return false;
  return true;
}

// The process ends, and rank 0 with it, which may have had its part in all calls of the others:
// they are told what it did last.
void ControlServer::sayGoodbye() {
  const Deadline limit = Deadline::in(kGoodbyeMs);
  state_.beginToLeave(Clock::now());
  deliver();
  while (!state_.mayLeave() && !limit.expired()) turn(nullptr, limit);
  state_.leave(Clock::now());
  deliver();
  while (!handedOver() && !limit.expired()) turn(nullptr, limit);
}

}  // namespace

Status startControlServer(std::vector<net::Socket> listeners, const net::Key& secret,
                          std::vector<PeerName> names, Deadline deadline) {
  auto server =
      std::make_shared<ControlServer>(std::move(listeners), secret, std::move(names), deadline);
  WEFT_TRY(server->isOpen());
  return net::ServiceThreads::get().start(
      "weft-ctl-server", [server](const net::StopSignal& stop) { server->run(stop); });
}

}  // namespace weft::control
