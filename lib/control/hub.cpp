// SPDX-License-Identifier: Apache-2.0
#include "control/hub.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "bootstrap/lobby.h"
#include "bootstrap/rank_card.h"
#include "bootstrap/service_threads.h"
#include "control/bodies.h"
#include "control/link_socket.h"
#include "control/switchboard.h"

namespace weft {
namespace {

constexpr std::int64_t kHandshakeMs = 2000;
constexpr std::int64_t kGoodbyeMs = 300;

Challenge introduction(const PeerName& self) {
  Challenge challenge;
  challenge.host = self.host;
  challenge.pid = self.pid;
  return challenge;
}

class Hub {
 public:
  Hub(std::vector<Socket> listeners, const Key& secret, std::vector<PeerName> names,
      Deadline deadline)
      : opening_(deadline),
        lobby_(std::in_place, std::move(listeners), secret, introduction(names[0]), kHandshakeMs),
        streams_(names.size()),
        board_(std::move(names)) {}

  void run(const StopSignal& stop) {
    while (!finished() && !stop.raised()) turn(&stop, Deadline::in(kForeverMs));
    if (stop.raised()) sayGoodbye();
  }

 private:
  using Clock = Switchboard::Clock;
  static constexpr std::int64_t kForeverMs = std::int64_t{24} * 3600 * 1000;

  bool finished() const;
  void turn(const StopSignal* stop, Deadline limit);
  void wait(const StopSignal* stop, Deadline limit);
  void letIn();
  void serve(std::uint32_t rank);
  void handle(std::uint32_t rank, const Message& message);
  void lose(std::uint32_t rank, int error);
  void deliver();
  void sayGoodbye();
  bool handedOver();

  const Deadline opening_;
  std::optional<Lobby> lobby_;  // until everybody has come
  std::vector<std::optional<Stream>> streams_;
  Switchboard board_;
};

bool Hub::finished() const {
  if (board_.everybodyCame()) return board_.nobodyHere();
  return opening_.expired() || board_.hasLeft(0);  // all ranks have given up
}

// `stop` is null once it has been raised.
void Hub::turn(const StopSignal* stop, Deadline limit) {
  wait(stop, limit);
  if (lobby_) letIn();
  for (std::uint32_t r = 0; r < streams_.size(); ++r) {
    if (streams_[r]) serve(r);
  }
  board_.tick(Clock::now());
  deliver();
}

// Sleeps until a socket or the clock has something for us.
void Hub::wait(const StopSignal* stop, Deadline limit) {
  std::vector<pollfd> entries;
  if (stop) entries.push_back({stop->fd(), POLLIN, 0});
  for (std::optional<Stream>& stream : streams_) {
    if (!stream) continue;
    const bool writes = !stream->channel().pending().empty();
    entries.push_back(
        {stream->socket().fd(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
  }
  if (lobby_) {
    lobby_->addTo(&entries);
    limit = limit.orSooner(lobby_->nextWake()).orSooner(opening_);
  }
  if (const auto tick = board_.nextTick())
    limit = limit.orSooner(Deadline::in(*tick - Clock::now()));
  (void)::poll(entries.data(), entries.size(), limit.pollTimeoutMs());
}

void Hub::letIn() {
  for (Lobby::Arrival& arrival : lobby_->serve()) {
    const auto rank = static_cast<std::uint32_t>(arrival.guest.member.hello.rank);
    if (rank >= streams_.size() || streams_[rank]) continue;
    streams_[rank].emplace(std::move(arrival.stream));
    watchClosely(streams_[rank]->socket());
    board_.seat(rank);
  }
  if (board_.everybodyCame()) lobby_.reset();
}

void Hub::serve(std::uint32_t rank) {
  errno = 0;
  const bool alive = streams_[rank]->fill();
  const int error = errno;
  while (streams_[rank]) {
    std::optional<Message> message;
    if (!streams_[rank]->channel().next(&message).ok()) return lose(rank, 0);
    if (!message) break;
    handle(rank, *message);
  }
  if (streams_[rank] && !alive) lose(rank, error);
}

void Hub::handle(std::uint32_t rank, const Message& message) {
  PageReport page;
  Status cause;
  if (message.type == MessageType::Query) {
    board_.query(rank, Clock::now());
  } else if (message.type == MessageType::Report && decode(message.body, &page)) {
    board_.report(rank, page, Clock::now());
  } else if (message.type == MessageType::Failed && decode(message.body, &cause)) {
    board_.propose(cause);
  } else if (message.type == MessageType::Gather) {
    board_.gather(rank, message.body);
  } else if (message.type == MessageType::Bye) {
    board_.bye(rank, Clock::now());
    streams_[rank].reset();
  }
}

void Hub::lose(std::uint32_t rank, int error) {
  board_.lose(rank, lossOf(*streams_[rank], error), Clock::now());
  streams_[rank].reset();
}

void Hub::deliver() {
  while (const auto out = board_.take()) {
    if (streams_[out->rank]) streams_[out->rank]->channel().send(out->type, out->body);
  }
  for (std::uint32_t r = 0; r < streams_.size(); ++r) {
    errno = 0;
    if (streams_[r] && !streams_[r]->flush()) lose(r, errno);
  }
}

bool Hub::handedOver() {
  for (std::optional<Stream>& stream : streams_) {
    if (stream && !stream->channel().pending().empty()) return false;
  }
  return true;
}

// The process ends, and rank 0 with it, which may have had its part in all calls of the others:
// they are told what it did last.
void Hub::sayGoodbye() {
  const Deadline limit = Deadline::in(kGoodbyeMs);
  board_.beginToLeave(Clock::now());
  deliver();
  while (!board_.mayLeave() && !limit.expired()) turn(nullptr, limit);
  board_.leave(Clock::now());
  deliver();
  while (!handedOver() && !limit.expired()) turn(nullptr, limit);
}

}  // namespace

Status startHub(std::vector<Socket> listeners, const Key& secret, std::vector<PeerName> names,
                Deadline deadline) {
  auto hub = std::make_shared<Hub>(std::move(listeners), secret, std::move(names), deadline);
  return ServiceThreads::get().start("weft-hub", [hub](const StopSignal& stop) { hub->run(stop); });
}

}  // namespace weft
