// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/host_hub.h"

#include <cstdio>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "bootstrap/host_relay.h"
#include "bootstrap/hub_messages.h"
#include "bootstrap/root_service.h"
#include "net/service_threads.h"

namespace weft::bootstrap {
namespace {

constexpr std::int64_t kHandshakeMs = 5000;
constexpr std::int64_t kUnusedMs = 10000;

std::vector<net::Socket> only(net::Socket socket) {
  std::vector<net::Socket> all;
  all.push_back(std::move(socket));
  return all;
}

// Places are in the order in which ranks came.
class HostHub final : public HostRelay {
 public:
  explicit HostHub(HubSpec spec)
      : HostRelay(only(std::move(spec.listener)), spec.secret, kHandshakeMs, std::move(spec.root)),
        leader_(spec.leader.rank),
        me_(std::make_shared<const net::Bytes>(encode(HubName{spec.leader, spec.rootName}))),
        rootName_(std::move(spec.rootName)) {}

  void run(const net::StopSignal& stop);

 private:
  bool finished() const;
  void letIn(PendingConnections& pending) override;
  void hear(Place place, net::Message message) override;
  void passDown(net::Message message) override;
  void tellOfLoss(Place place) override;
  void tellCutOff() override;
  void deliver() override;
  Deadline soonest(Deadline limit) const override;
  void keepOnly(Place seated);
  void tellAll(net::MessageType type, const std::shared_ptr<const net::Bytes>& body);
  void sayGoodbye();

  const std::int32_t leader_;  // the rank of this process
  const std::shared_ptr<const net::Bytes> me_;
  const std::string rootName_;
  Place came_ = 0;
  std::optional<Place> leaders_;  // place, once it has come
  Deadline unused_ = Deadline::in(kUnusedMs);
  std::vector<Passed> passed_;  // to the root
};

void HostHub::run(const net::StopSignal& stop) {
  flushUp();
  while (!finished() && !stop.raised()) turn(&stop, Deadline::in(kForAgesMs));
  for (const Deadline limit = Deadline::in(kPartingMs); !finished() && !limit.expired();)
    turn(nullptr, limit);
  if (up_) sayGoodbye();
}

// Others of its host may come before the rank that made it, and hear that all is lost, and go.
bool HostHub::finished() const {
  if (parting_) return isParted();
  return ranks_.empty() && (leaders_ || !pending_ || unused_.expired()) &&
         up_->channel().pending().empty();
}

Deadline HostHub::soonest(Deadline limit) const {
  return ranks_.empty() && !unused_.expired() ? limit.orSooner(unused_) : limit;
}

void HostHub::letIn(PendingConnections& pending) {
  for (PendingConnections::Authenticated& joined : pending.serve()) {
    const Place place = came_++;
    if (joined.member.hello.rank == leader_) leaders_ = place;
    admit(place, std::move(joined.stream)).channel().send(net::MessageType::Relayed, me_);
    passed_.push_back({place, net::MessageType::Info, encode(joined.member)});
    serveRank(place);
  }
  for (const std::int32_t rank : pending.takeLost())
    passed_.push_back(
        {kNobody, net::MessageType::Ended, encodeNumber(static_cast<std::uint32_t>(rank))});
}

void HostHub::hear(Place place, net::Message message) {
  if (message.type == net::MessageType::Query) {
    ranks_.at(place).channel().send(net::MessageType::Relayed, me_);
    told_.insert(place);
    return;
  }
  if (message.type == net::MessageType::Bye) leaving_.insert(place);
  passed_.push_back({place, message.type, std::move(message.body)});
}

void HostHub::tellOfLoss(Place place) { passed_.push_back({place, net::MessageType::Ended, {}}); }

void HostHub::passDown(net::Message message) {
  std::uint32_t seated = 0;
  if (message.type == net::MessageType::Relayed && decodeNumber(message.body, &seated))
    return keepOnly(seated);
  tellAll(message.type, std::make_shared<const net::Bytes>(std::move(message.body)));
}

// All have met. Closed before anybody hears of it: who comes now, or has come after them, is of the
// next communicator of the same id, and finds another hub.
void HostHub::keepOnly(Place seated) {
  pending_.reset();
  while (!ranks_.empty() && ranks_.rbegin()->first >= seated) close(ranks_.rbegin()->first);
}

void HostHub::tellAll(net::MessageType type, const std::shared_ptr<const net::Bytes>& body) {
  for (auto& [place, stream] : ranks_) {
    stream.channel().send(type, body);
    told_.insert(place);
  }
}

void HostHub::tellCutOff() {
  tellAll(net::MessageType::Error, std::make_shared<const net::Bytes>(
                                       encode(rootIsLost(rootName_, "it hung up on its hub"))));
}

// Whom that loses the root is told of as well. The rank of this process hears last, as the process
// may end then. It need not be the first that came: others find the hub as soon as it is there.
void HostHub::deliver() {
  do {
    for (net::Bytes& body : encodePassed(std::exchange(passed_, {})))
      if (up_) up_->channel().send(net::MessageType::Relayed, std::move(body));
    flushUp();
    const std::set<Place> told = std::exchange(told_, {});
    for (const Place place : told)
      if (place != leaders_) flushRank(place);
    if (leaders_ && told.contains(*leaders_)) flushRank(*leaders_);
  } while (!passed_.empty() || !told_.empty());
}

// For those, too, that have not said it.
void HostHub::sayGoodbye() {
  up_->channel().send(net::MessageType::Bye, net::Bytes());
  (void)up_->awaitFlushed(Deadline::in(kPartingMs));
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
