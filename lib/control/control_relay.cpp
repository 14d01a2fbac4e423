// SPDX-License-Identifier: Apache-2.0
#include "control/control_relay.h"

#include <poll.h>

#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "bootstrap/pending_connections.h"
#include "control/bodies.h"
#include "control/bundles.h"
#include "control/link_socket.h"
#include "net/ready_set.h"
#include "net/service_threads.h"

namespace weft::control {
namespace {

constexpr std::int64_t kMemberHandshakeMs = 2000;
constexpr std::int64_t kPartingMs = 300;
constexpr std::int64_t kForAgesMs = std::int64_t{24} * 3600 * 1000;

class ControlRelay {
 public:
  explicit ControlRelay(RelaySpec spec)
      : spec_(std::move(spec)),
        pending_(std::in_place, std::move(spec_.listeners), spec_.secret, kMemberHandshakeMs),
        server_(std::move(spec_.server)) {
    watchClosely(server_->socket());
  }

  Status isOpen() const {
    WEFT_TRY(pending_->isOpen());
    return ready_.isOpen();
  }
  void run(const net::StopSignal& stop);

 private:
  bool finished() const;
  void turn(const net::StopSignal* stop, Deadline limit);
  void wait(const net::StopSignal* stop, Deadline limit);
  void letIn();
  void serveRank(std::uint32_t rank);
  void passUp(std::uint32_t rank, net::Message message);
  void loseRank(std::uint32_t rank);
  void close(std::uint32_t rank);
  void serveServer();
  void passDown(const net::Message& message);
  void loseServer();
  void deliver();
  void sayGoodbye();
  bool watchFor(net::Stream& stream, std::uint64_t id);

  RelaySpec spec_;
  std::optional<bootstrap::PendingConnections> pending_;  // until all members have come
  std::size_t came_ = 0;
  net::ReadySet ready_;                  // by rank; the server's id is the number of ranks
  std::unique_ptr<net::Stream> server_;  // null once it is lost
  std::map<std::uint32_t, net::Stream> members_;
  std::optional<Deadline> parting_;  // the server is lost: until when members may take to close
  std::set<std::uint32_t> leaving_;  // have said good-bye, which the server is to be told first
  std::set<std::uint32_t> told_;     // have something to be sent
  Bundles up_;
};

void ControlRelay::run(const net::StopSignal& stop) {
  if (!watchFor(*server_, spec_.ranks)) loseServer();
  while (!finished() && !stop.raised()) turn(&stop, Deadline::in(kForAgesMs));
  // The leader's own good-bye comes through here.
  for (const Deadline limit = Deadline::in(kPartingMs);
       stop.raised() && !finished() && members_.contains(spec_.leader) && !limit.expired();)
    turn(nullptr, limit);
}

bool ControlRelay::finished() const {
  const bool opened = !pending_ || spec_.opening.expired();
  if (parting_) return members_.empty() || parting_->expired();
  return members_.empty() && opened && server_->channel().pending().empty();
}

// `stop` is null once it has been raised.
void ControlRelay::turn(const net::StopSignal* stop, Deadline limit) {
  wait(stop, limit);
  if (pending_) letIn();
  for (const std::uint64_t id : ready_.take()) {
    if (id == spec_.ranks)
      serveServer();
    else
      serveRank(static_cast<std::uint32_t>(id));
  }
  deliver();
}

void ControlRelay::wait(const net::StopSignal* stop, Deadline limit) {
  pollfd entries[] = {{stop ? stop->fd() : -1, POLLIN, 0},
                      {ready_.fd(), POLLIN, 0},
                      {pending_ ? pending_->fd() : -1, POLLIN, 0}};
  if (pending_) limit = limit.orSooner(pending_->nextWake());
  if (parting_) limit = limit.orSooner(*parting_);
  if (pending_ && !spec_.opening.expired()) limit = limit.orSooner(spec_.opening);
  (void)::poll(entries, std::size(entries), limit.pollTimeoutMs());
}

void ControlRelay::letIn() {
  for (bootstrap::PendingConnections::Authenticated& joined : pending_->serve()) {
    const auto rank = static_cast<std::uint32_t>(joined.member.hello.rank);
    if (rank >= spec_.ranks || members_.contains(rank)) continue;
    watchClosely(members_.emplace(rank, std::move(joined.stream)).first->second.socket());
    ++came_;
    up_.add(rank, net::MessageType::Info, std::make_shared<const net::Bytes>());
    serveRank(rank);
  }
  if (came_ >= spec_.members) pending_.reset();
}

// What does not go now goes as soon as it can.
bool ControlRelay::watchFor(net::Stream& stream, std::uint64_t id) {
  return stream.flush() &&
         ready_.watch(stream.socket().fd(), id, !stream.channel().pending().empty());
}

void ControlRelay::serveRank(std::uint32_t rank) {
  const auto member = members_.find(rank);
  if (member == members_.end()) return;
  net::Stream& stream = member->second;
  const bool alive = stream.fill();
  for (std::optional<net::Message> message;;) {
    if (!stream.channel().next(&message).ok()) return loseRank(rank);
    if (!message) break;
    passUp(rank, std::move(*message));
  }
  if (!alive || !watchFor(stream, rank)) loseRank(rank);
}

// Who asks or proposes waits for an answer, and is told that it is under way.
void ControlRelay::passUp(std::uint32_t rank, net::Message message) {
  using net::MessageType;
  if (message.type == MessageType::Query || message.type == MessageType::Failed) {
    members_.at(rank).channel().send(MessageType::Roster, net::Bytes());
    told_.insert(rank);
  }
  if (message.type == MessageType::Bye) leaving_.insert(rank);
  up_.add(rank, message.type, std::make_shared<const net::Bytes>(std::move(message.body)));
}

void ControlRelay::loseRank(std::uint32_t rank) {
  if (!leaving_.contains(rank))
    up_.add(rank, net::MessageType::Ended,
            std::make_shared<const net::Bytes>(encode(lossOf(members_.at(rank)))));
  close(rank);
}

void ControlRelay::close(std::uint32_t rank) {
  leaving_.erase(rank);
  told_.erase(rank);
  ready_.remove(members_.at(rank).socket().fd());
  members_.erase(rank);
}

void ControlRelay::serveServer() {
  if (!server_) return;
  const bool alive = server_->fill();
  for (std::optional<net::Message> message;;) {
    if (!server_->channel().next(&message).ok()) return loseServer();
    if (!message) break;
    passDown(*message);
  }
  if (!alive || !watchFor(*server_, spec_.ranks)) loseServer();
}

void ControlRelay::passDown(const net::Message& message) {
  RankSet ranks;
  net::Message inner{};
  if (message.type != net::MessageType::Relayed ||
      !decodeRelayed(message.body, spec_.ranks, &ranks, &inner))
    return;
  const auto body = std::make_shared<const net::Bytes>(std::move(inner.body));
  ranks.forEach([&](std::uint32_t rank) {
    const auto member = members_.find(rank);
    if (member == members_.end()) return;
    member->second.channel().send(inner.type, body);
    told_.insert(rank);
  });
}

// All members hear how, as if it had been their own connection, and close. To close first would take
// that word back, where something of theirs is not read yet.
void ControlRelay::loseServer() {
  const auto how = std::make_shared<const net::Bytes>(encode(lossOf(*server_)));
  ready_.remove(server_->socket().fd());
  server_.reset();
  pending_.reset();
  parting_ = Deadline::in(kPartingMs);
  for (auto& [rank, stream] : members_) {
    stream.channel().send(net::MessageType::Bye, how);
    (void)watchFor(stream, rank);
  }
}

void ControlRelay::deliver() {
  while (server_) {
    for (net::Bytes& body : up_.take())
      server_->channel().send(net::MessageType::Relayed, std::move(body));
    if (!watchFor(*server_, spec_.ranks)) return loseServer();
    if (server_->channel().pending().empty()) sayGoodbye();
    for (const std::uint32_t rank : std::exchange(told_, {}))
      if (!watchFor(members_.at(rank), rank)) loseRank(rank);
    if (up_.empty()) return;
  }
}

// To those of whose good-bye the server has been told.
void ControlRelay::sayGoodbye() {
  for (const std::uint32_t rank : std::set(leaving_)) {
    net::Stream& stream = members_.at(rank);
    stream.channel().send(net::MessageType::Bye, net::Bytes());
    (void)stream.flush();
    close(rank);
  }
}

}  // namespace

Status startControlRelay(RelaySpec spec) {
  auto relay = std::make_shared<ControlRelay>(std::move(spec));
  WEFT_TRY(relay->isOpen());
  return net::ServiceThreads::get().start(
      "weft-ctl-relay", [relay](const net::StopSignal& stop) { relay->run(stop); });
}

}  // namespace weft::control
