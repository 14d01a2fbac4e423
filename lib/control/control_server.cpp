// SPDX-License-Identifier: Apache-2.0
#include "control/control_server.h"

#include <poll.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/threads.h"
#include "bootstrap/pending_connections.h"
#include "control/bodies.h"
#include "control/bundles.h"
#include "control/link_socket.h"
#include "control/server_groups.h"
#include "net/ready_set.h"
#include "net/service_threads.h"

namespace weft::control {
namespace {

constexpr std::int64_t kHandshakeMs = 2000;
constexpr std::int64_t kGoodbyeMs = 1000;  // a starved machine takes some hundred

class ControlServer {
 public:
  ControlServer(std::vector<net::Socket> listeners, const net::Key& secret,
                std::vector<PeerName> names, Deadline deadline,
                std::shared_ptr<NewGroups> newGroups)
      : opening_(deadline),
        pending_(std::in_place, std::move(listeners), secret, kHandshakeMs),
        ranks_(static_cast<std::uint32_t>(names.size())),
        name_(names[0]),
        streams_(2 * names.size()),
        home_(names.size()),
        relay_(names.size()),
        groups_(std::move(names), std::move(newGroups)) {}

  Status isOpen() const {
    WEFT_TRY(pending_->isOpen());
    return ready_.isOpen();
  }
  void run(const net::StopSignal& stop) {
    const Status served = withoutExceptions([&]() -> Status {
      while (!finished() && !stop.raised()) turn(&stop, Deadline::in(kForeverMs));
      if (stop.raised()) sayGoodbye();
      return {};
    });
    if (!served.ok()) (void)withoutExceptions([&] { return fail(served); });
  }

 private:
  using Clock = ServerGroups::Clock;
  static constexpr std::int64_t kForeverMs = std::int64_t{24} * 3600 * 1000;

  // A connection: rank r's own is r, that of the relay in its process is r + ranks_.
  using Id = std::uint32_t;

  bool isRelay(Id id) const { return id >= ranks_; }
  std::optional<std::uint32_t> leaderOf(Id id) const {
    return isRelay(id) ? std::optional(id - ranks_) : std::nullopt;
  }
  bool finished() const;
  void turn(const net::StopSignal* stop, Deadline limit);
  void wait(const net::StopSignal* stop, Deadline limit);
  void letIn();
  void open(Id id, net::Stream stream);
  bool seat(std::uint32_t rank, Id id);
  void serve(Id id);
  void flush(Id id);
  void close(Id id);
  void receive(Id id, const net::Message& message);
  void handle(std::uint32_t rank, const net::Message& message);
  void bye(std::uint32_t rank);
  void lose(Id id);
  void loseRelay(Id id, const std::optional<Loss>& loss);
  void deliver();
  void sayGoodbye();
  Status fail(const Status& why);
  void awaitClosed(Deadline limit);
  void drain(Id id);

  const Deadline opening_;
  // Until everybody has come; and while there are relays, whose ranks may have to come themselves.
  std::optional<bootstrap::PendingConnections> pending_;
  bool relays_ = false;
  const std::uint32_t ranks_;
  const PeerName name_;  // rank 0's
  net::ReadySet ready_;  // by Id
  std::vector<std::optional<net::Stream>> streams_;
  std::vector<Id> home_;                  // by rank: over what it is reached
  std::vector<std::optional<Id>> relay_;  // by rank: the relay that has a connection of it
  ServerGroups groups_;
};

bool ControlServer::finished() const {
  if (groups_.everybodyCame()) return groups_.nobodyHere();
  return opening_.expired() || groups_.hasLeft(0);  // all ranks have given up
}

// `stop` is null once it has been raised.
void ControlServer::turn(const net::StopSignal* stop, Deadline limit) {
  wait(stop, limit);
  if (pending_) letIn();
  for (const std::uint64_t id : ready_.take()) serve(static_cast<Id>(id));
  const auto silent = [](const std::optional<net::Stream>& s) {
    return s && isSilent(s->socket());
  };
  groups_.tick(Clock::now(), [&] { return std::ranges::any_of(streams_, silent); });
  deliver();
}

// Sleeps until a socket or the clock has something for us.
void ControlServer::wait(const net::StopSignal* stop, Deadline limit) {
  pollfd entries[] = {{stop ? stop->fd() : -1, POLLIN, 0},
                      {ready_.fd(), POLLIN, 0},
                      {pending_ ? pending_->fd() : -1, POLLIN, 0}};
  if (pending_) limit = limit.orSooner(pending_->nextWake());
  if (!groups_.everybodyCame()) limit = limit.orSooner(opening_);
  if (const auto tick = groups_.nextTick())
    limit = limit.orSooner(Deadline::in(*tick - Clock::now()));
  (void)::poll(entries, std::size(entries), limit.pollTimeoutMs());
}

void ControlServer::letIn() {
  for (bootstrap::PendingConnections::Authenticated& joined : pending_->serve()) {
    const auto rank = static_cast<std::uint32_t>(joined.member.hello.rank);
    if (rank >= ranks_) continue;
    const bool relay = joined.member.info.configText == kRelay;
    const Id id = relay ? rank + ranks_ : rank;
    if (streams_[id] || (!relay && !seat(rank, id))) continue;
    relays_ = relays_ || relay;
    open(id, std::move(joined.stream));
  }
  if (groups_.everybodyCame() && !relays_) pending_.reset();
}

void ControlServer::open(Id id, net::Stream stream) {
  streams_[id].emplace(std::move(stream));
  watchClosely(streams_[id]->socket());
  serve(id);
}

// False for who has come and is not expected again.
bool ControlServer::seat(std::uint32_t rank, Id id) {
  const bool back = groups_.here(rank) && isRelay(home_[rank]) && !isRelay(id);
  if (groups_.hasCome(rank) && !back) return false;
  home_[rank] = id;
  if (isRelay(id)) relay_[rank] = id;
  if (back)
    groups_.comeBack(rank);
  else
    groups_.seat(rank, leaderOf(id));
  return true;
}

void ControlServer::serve(Id id) {
  if (!streams_[id]) return;
  const bool alive = streams_[id]->fill();
  while (streams_[id]) {
    std::optional<net::Message> message;
    if (!streams_[id]->channel().next(&message).ok()) return lose(id);
    if (!message) break;
    receive(id, *message);
  }
  if (streams_[id] && !alive) return lose(id);
  flush(id);
}

// What does not go now goes as soon as it can.
void ControlServer::flush(Id id) {
  std::optional<net::Stream>& stream = streams_[id];
  if (!stream) return;
  const bool flushed = stream->flush();
  const bool writes = !stream->channel().pending().empty();
  if (!flushed || !ready_.watch(stream->socket().fd(), id, writes)) lose(id);
}

void ControlServer::close(Id id) {
  ready_.remove(streams_[id]->socket().fd());
  streams_[id].reset();
}

// A relay says nothing for ranks that have come themselves meanwhile.
void ControlServer::receive(Id id, const net::Message& message) {
  if (!isRelay(id)) return handle(id, message);
  if (message.type == net::MessageType::Bye) return close(id), loseRelay(id, {});
  if (Status cause;
      message.type == net::MessageType::Failed && bootstrap::decode(message.body, &cause))
    return groups_.propose(id - ranks_, cause);
  RankSet ranks;
  net::Message inner{};
  if (message.type != net::MessageType::Relayed ||
      !decodeRelayed(message.body, ranks_, &ranks, &inner))
    return;
  const bool parts = inner.type == net::MessageType::Ended || inner.type == net::MessageType::Bye;
  ranks.forEach([&](std::uint32_t rank) {
    if (parts && relay_[rank] == id) relay_[rank].reset();
    if (inner.type == net::MessageType::Info)
      (void)seat(rank, id);
    else if (home_[rank] == id && groups_.here(rank))
      handle(rank, inner);
  });
}

void ControlServer::handle(std::uint32_t rank, const net::Message& message) {
  Loss loss;
  if (message.type == net::MessageType::Ended && decode(message.body, &loss))
    groups_.lose(rank, loss, Clock::now());
  else if (message.type == net::MessageType::Bye)
    bye(rank);
  else
    groups_.hear(rank, message, Clock::now());
}

void ControlServer::bye(std::uint32_t rank) {
  groups_.bye(rank, Clock::now());
  if (!isRelay(home_[rank])) close(rank);
}

void ControlServer::lose(Id id) {
  const Loss loss = lossOf(*streams_[id]);
  close(id);
  if (isRelay(id)) return loseRelay(id, loss);
  if (!relay_[id] || !groups_.here(id)) return groups_.lose(id, loss, Clock::now());
  // It gave up to come itself, as it took too long, and still has the relay; or the relay will tell.
  home_[id] = *relay_[id];
  groups_.comeBack(id, leaderOf(home_[id]));
}

// A host that is cut off is so for all its ranks. Else it is one process that has ended, unless it has
// said good-bye, and the other ranks come themselves.
void ControlServer::loseRelay(Id id, const std::optional<Loss>& loss) {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    if (relay_[rank] == id) relay_[rank].reset();
    if (home_[rank] != id || !groups_.here(rank)) continue;
    if (loss && (loss->kind == Loss::Cut || rank == id - ranks_))
      groups_.lose(rank, *loss, Clock::now());
    else
      groups_.orphan(rank, Clock::now());
  }
}

void ControlServer::deliver() {
  std::set<Id> told;
  std::map<Id, Bundles> bundles;
  while (const auto out = groups_.take()) {
    const Id id = home_[out->rank];
    if (!streams_[id]) continue;
    if (isRelay(id))
      bundles[id].add(out->rank, out->type, out->body);
    else
      streams_[id]->channel().send(out->type, out->body);
    told.insert(id);
  }
  for (auto& [id, bundle] : bundles)
    for (net::Bytes& body : bundle.take())
      streams_[id]->channel().send(net::MessageType::Relayed, std::move(body));
  for (const Id id : told) flush(id);
}

// Whoever has heard a good-bye closes. To close first would take it back, where something that is on
// its way here is not read any more.
void ControlServer::awaitClosed(Deadline limit) {
  const auto isOpen = [](const std::optional<net::Stream>& stream) { return stream.has_value(); };
  while (std::ranges::any_of(streams_, isOpen) && !limit.expired()) {
    pollfd entry{ready_.fd(), POLLIN, 0};
    (void)::poll(&entry, 1, limit.pollTimeoutMs());
    for (const std::uint64_t id : ready_.take()) drain(static_cast<Id>(id));
  }
}

// Reads and forgets, until it closes or waits for that to be done here.
void ControlServer::drain(Id id) {
  std::optional<net::Stream>& stream = streams_[id];
  if (!stream) return;
  bool stays = stream->fill() && stream->flush();
  std::optional<net::Message> unheard;
  while (stays && stream->channel().next(&unheard).ok() && unheard)
    stays = unheard->type != net::MessageType::Bye;
  const bool writes = stays && !stream->channel().pending().empty();
  if (!stays || !ready_.watch(stream->socket().fd(), id, writes)) close(id);
}

// The process ends, and rank 0 with it, which may have had its part in all calls of the others:
// they are told what it did last.
void ControlServer::sayGoodbye() {
  const Deadline limit = Deadline::in(kGoodbyeMs);
  groups_.beginToLeave(Clock::now());
  deliver();
  while (!groups_.mayLeave() && !limit.expired()) turn(nullptr, limit);
  groups_.leave(Clock::now());
  deliver();
  pending_.reset();
  awaitClosed(limit);
}

// Without memory, say: all are told why nobody tells them of each other any more.
Status ControlServer::fail(const Status& why) {
  logError("control server failed: ", why.text());
  groups_.propose(0, within("control server: ", name_, why));
  deliver();
  awaitClosed(Deadline::in(kGoodbyeMs));
  return {};
}

}  // namespace

Status startControlServer(std::vector<net::Socket> listeners, const net::Key& secret,
                          std::vector<PeerName> names, Deadline deadline,
                          std::shared_ptr<NewGroups> newGroups) {
  auto server = std::make_shared<ControlServer>(std::move(listeners), secret, std::move(names),
                                                deadline, std::move(newGroups));
  WEFT_TRY(server->isOpen());
  return net::ServiceThreads::get().start(
      "weft-ctl-server", [server](const net::StopSignal& stop) { server->run(stop); });
}

}  // namespace weft::control
