// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/host_hub.h"

#include <poll.h>

#include <cstdio>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "bootstrap/hub_messages.h"
#include "bootstrap/pending_connections.h"
#include "bootstrap/root_service.h"
#include "net/ready_set.h"
#include "net/service_threads.h"

namespace weft::bootstrap {
namespace {

constexpr std::int64_t kHandshakeMs = 5000;
constexpr std::int64_t kUnusedMs = 10000;
constexpr std::int64_t kPartingMs = 300;
constexpr std::int64_t kForAgesMs = std::int64_t{24} * 3600 * 1000;
constexpr std::uint64_t kRoot = kNobody;  // among those that are ready

std::vector<net::Socket> only(net::Socket socket) {
  std::vector<net::Socket> all;
  all.push_back(std::move(socket));
  return all;
}

class HostHub {
 public:
  explicit HostHub(HubSpec spec)
      : leader_(spec.leader.rank),
        me_(std::make_shared<const net::Bytes>(encode(HubName{spec.leader, spec.rootName}))),
        rootName_(std::move(spec.rootName)),
        pending_(std::in_place, only(std::move(spec.listener)), spec.secret, kHandshakeMs),
        root_(std::move(spec.root)) {}

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
  void serveRank(std::uint32_t place);
  void hear(std::uint32_t place, net::Message message);
  void loseRank(std::uint32_t place);
  void close(std::uint32_t place);
  void serveRoot();
  void passDown(net::Message message);
  void keepOnly(std::uint32_t seated);
  void tellAll(net::MessageType type, const std::shared_ptr<const net::Bytes>& body);
  void flush(std::uint32_t place);
  void loseRoot();
  void deliver();
  void sayGoodbye();
  bool watchFor(net::Stream& stream, std::uint64_t id);

  const std::int32_t leader_;  // the rank of this process
  const std::shared_ptr<const net::Bytes> me_;
  const std::string rootName_;
  std::optional<PendingConnections> pending_;  // until all ranks have met
  net::ReadySet ready_;                        // by place, and kRoot
  std::unique_ptr<net::Stream> root_;          // null once it is lost
  std::map<std::uint32_t, net::Stream> ranks_;
  std::uint32_t came_ = 0;
  std::optional<std::uint32_t> leaders_;  // place, once it has come
  Deadline unused_ = Deadline::in(kUnusedMs);
  std::optional<Deadline> parting_;  // the root is lost: until when ranks may take to close
  std::set<std::uint32_t> leaving_;  // have said good-bye
  std::set<std::uint32_t> told_;     // have something to be sent
  std::vector<Passed> up_;
};

void HostHub::run(const net::StopSignal& stop) {
  if (!watchFor(*root_, kRoot)) loseRoot();
  while (!finished() && !stop.raised()) turn(&stop, Deadline::in(kForAgesMs));
  for (const Deadline limit = Deadline::in(kPartingMs); !finished() && !limit.expired();)
    turn(nullptr, limit);
  if (root_) sayGoodbye();
}

bool HostHub::finished() const {
  if (parting_) return ranks_.empty() || parting_->expired();
  return ranks_.empty() && (came_ != 0 || !pending_ || unused_.expired()) &&
         root_->channel().pending().empty();
}

// `stop` is null once it has been raised.
void HostHub::turn(const net::StopSignal* stop, Deadline limit) {
  wait(stop, limit);
  if (pending_) letIn();
  for (const std::uint64_t id : ready_.take())
    if (id == kRoot)
      serveRoot();
    else
      serveRank(static_cast<std::uint32_t>(id));
  deliver();
}

void HostHub::wait(const net::StopSignal* stop, Deadline limit) {
  pollfd entries[] = {{stop ? stop->fd() : -1, POLLIN, 0},
                      {ready_.fd(), POLLIN, 0},
                      {pending_ ? pending_->fd() : -1, POLLIN, 0}};
  if (pending_) limit = limit.orSooner(pending_->nextWake());
  if (came_ == 0) limit = limit.orSooner(unused_);
  if (parting_) limit = limit.orSooner(*parting_);
  (void)::poll(entries, std::size(entries), limit.pollTimeoutMs());
}

void HostHub::letIn() {
  for (PendingConnections::Authenticated& joined : pending_->serve()) {
    const std::uint32_t place = came_++;
    if (joined.member.hello.rank == leader_) leaders_ = place;
    net::Stream& stream = ranks_.emplace(place, std::move(joined.stream)).first->second;
    stream.channel().send(net::MessageType::Relayed, me_);
    up_.push_back({place, net::MessageType::Info, encode(joined.member)});
    serveRank(place);
  }
  for (const std::int32_t rank : pending_->takeLost())
    up_.push_back(
        {kNobody, net::MessageType::Ended, encodeNumber(static_cast<std::uint32_t>(rank))});
}

// What does not go now goes as soon as it can.
bool HostHub::watchFor(net::Stream& stream, std::uint64_t id) {
  return stream.flush() &&
         ready_.watch(stream.socket().fd(), id, !stream.channel().pending().empty());
}

void HostHub::serveRank(std::uint32_t place) {
  const auto rank = ranks_.find(place);
  if (rank == ranks_.end()) return;
  net::Stream& stream = rank->second;
  const bool alive = stream.fill();
  for (std::optional<net::Message> message;;) {
    if (!stream.channel().next(&message).ok()) return loseRank(place);
    if (!message) break;
    hear(place, std::move(*message));
  }
  if (!alive || !watchFor(stream, place)) loseRank(place);
}

void HostHub::hear(std::uint32_t place, net::Message message) {
  if (message.type == net::MessageType::Query) {
    ranks_.at(place).channel().send(net::MessageType::Relayed, me_);
    told_.insert(place);
    return;
  }
  if (message.type == net::MessageType::Bye) leaving_.insert(place);
  up_.push_back({place, message.type, std::move(message.body)});
}

void HostHub::loseRank(std::uint32_t place) {
  if (!leaving_.contains(place)) up_.push_back({place, net::MessageType::Ended, {}});
  close(place);
}

void HostHub::close(std::uint32_t place) {
  leaving_.erase(place);
  told_.erase(place);
  ready_.remove(ranks_.at(place).socket().fd());
  ranks_.erase(place);
}

void HostHub::serveRoot() {
  if (!root_) return;
  const bool alive = root_->fill();
  for (std::optional<net::Message> message;;) {
    if (!root_->channel().next(&message).ok()) return loseRoot();
    if (!message) break;
    passDown(std::move(*message));
  }
  if (!alive || !watchFor(*root_, kRoot)) loseRoot();
}

void HostHub::passDown(net::Message message) {
  std::uint32_t seated = 0;
  if (message.type == net::MessageType::Relayed && decodeNumber(message.body, &seated))
    return keepOnly(seated);
  tellAll(message.type, std::make_shared<const net::Bytes>(std::move(message.body)));
}

// All have met. Closed before anybody hears of it: who comes now, or has come after them, is of the
// next communicator of the same id, and finds another hub.
void HostHub::keepOnly(std::uint32_t seated) {
  pending_.reset();
  while (!ranks_.empty() && ranks_.rbegin()->first >= seated) close(ranks_.rbegin()->first);
}

void HostHub::tellAll(net::MessageType type, const std::shared_ptr<const net::Bytes>& body) {
  for (auto& [place, stream] : ranks_) {
    stream.channel().send(type, body);
    told_.insert(place);
  }
}

// All hear it as if it had been their own connection.
void HostHub::loseRoot() {
  ready_.remove(root_->socket().fd());
  root_.reset();
  pending_.reset();
  parting_ = Deadline::in(kPartingMs);
  tellAll(net::MessageType::Error, std::make_shared<const net::Bytes>(
                                       encode(rootIsLost(rootName_, "it hung up on its hub"))));
}

void HostHub::flush(std::uint32_t place) {
  if (!watchFor(ranks_.at(place), place)) loseRank(place);
}

// Whom that loses the root is told of as well. The rank of this process hears last, as the process may end then. It need not
// be the first that came: others find the hub as soon as it is there.
void HostHub::deliver() {
  do {
    for (net::Bytes& body : encodePassed(std::exchange(up_, {})))
      if (root_) root_->channel().send(net::MessageType::Relayed, std::move(body));
    if (root_ && !watchFor(*root_, kRoot)) loseRoot();
    const std::set<std::uint32_t> told = std::exchange(told_, {});
    for (const std::uint32_t place : told)
      if (place != leaders_) flush(place);
    if (leaders_ && told.contains(*leaders_)) flush(*leaders_);
  } while (!up_.empty() || !told_.empty());
}

// For those, too, that have not said it.
void HostHub::sayGoodbye() {
  root_->channel().send(net::MessageType::Bye, net::Bytes());
  (void)root_->awaitFlushed(Deadline::in(kPartingMs));
}

}  // namespace

std::string hubName(const net::Key& secret, const Hello& hello, std::string_view host) {
  const std::string protocol =
      text("weft hub ", hello.version, ' ', hello.wire.min, '-', hello.wire.max, ' ');
  const net::Digest digest = net::hmacSha256(secret, {net::bytesOf(protocol), net::bytesOf(host)});
  std::string name = "weft-hub-";
  for (std::size_t i = 0; i < 16; ++i) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", std::to_integer<unsigned>(digest[i]));
    name += hex;
  }
  return name;
}

Status startHub(HubSpec spec) {
  auto hub = std::make_shared<HostHub>(std::move(spec));
  WEFT_TRY(hub->isOpen());
  return net::ServiceThreads::get().start("weft-hub",
                                          [hub](const net::StopSignal& stop) { hub->run(stop); });
}

}  // namespace weft::bootstrap
