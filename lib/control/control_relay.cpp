// SPDX-License-Identifier: Apache-2.0
#include "control/control_relay.h"

#include <set>
#include <utility>

#include "base/log.h"
#include "base/threads.h"
#include "bootstrap/host_relay.h"
#include "control/bodies.h"
#include "control/bundles.h"
#include "control/groups.h"
#include "control/link_socket.h"
#include "net/service_threads.h"

namespace weft::control {
namespace {

constexpr std::int64_t kMemberHandshakeMs = 2000;

bool expectsWord(const net::Message& message) {
  std::uint32_t group = 0;
  net::Message inner{};
  if (message.type == net::MessageType::Grouped && decodeGrouped(message.body, &group, &inner))
    return expectsWord(inner);
  return message.type == net::MessageType::Query || message.type == net::MessageType::Failed;
}

// A rank's place is its number.
class ControlRelay final : public bootstrap::HostRelay {
 public:
  explicit ControlRelay(RelaySpec spec)
      : HostRelay(std::move(spec.listeners), spec.secret, kMemberHandshakeMs,
                  std::move(spec.server)),
        name_(std::move(spec.leader)),
        leader_(static_cast<Place>(name_.rank)),
        members_(spec.members),
        worldSize_(spec.ranks),
        opening_(spec.opening) {
    watchClosely(up_->socket());
  }

  void run(const net::StopSignal& stop);

 private:
  void serve(const net::StopSignal& stop);
  bool finished() const;
  void letIn(bootstrap::PendingConnections& pending) override;
  void hear(Place rank, net::Message message) override;
  void passDown(net::Message message) override;
  void tellOfLoss(Place rank) override;
  void tellCutOff() override;
  void deliver() override;
  Deadline soonest(Deadline limit) const override;
  void sayGoodbye();
  void partFromServer();

  const PeerName name_;  // of the leader
  const Place leader_;
  const std::size_t members_, worldSize_;
  const Deadline opening_;
  std::size_t came_ = 0;
  Bundles passed_;  // to the server
};

// A relay that fails, without memory, say, may have lost what was on its way, so all are told; its ranks
// by the server, to which they come then.
void ControlRelay::run(const net::StopSignal& stop) {
  const Status served = withoutExceptions([&]() -> Status {
    serve(stop);
    return {};
  });
  if (served.ok()) return;
  (void)withoutExceptions([&]() -> Status {
    logError("control relay failed: ", served.text());
    if (!up_) return {};
    up_->channel().send(net::MessageType::Failed,
                        bootstrap::encode(within("control relay: ", name_, served)));
    partFromServer();
    return {};
  });
}

void ControlRelay::serve(const net::StopSignal& stop) {
  flushUp();
  while (!finished() && !stop.raised()) turn(&stop, Deadline::in(kForAgesMs));
  // The leader's own good-bye comes through here.
  for (const Deadline limit = Deadline::in(kPartingMs);
       stop.raised() && !finished() && ranks_.contains(leader_) && !limit.expired();)
    turn(nullptr, limit);
  if (up_ && ranks_.empty()) partFromServer();
}

bool ControlRelay::finished() const {
  if (parting_) return isParted();
  const bool opened = !pending_ || opening_.expired();
  return ranks_.empty() && opened && up_->channel().pending().empty();
}

Deadline ControlRelay::soonest(Deadline limit) const {
  return pending_ && !opening_.expired() ? limit.orSooner(opening_) : limit;
}

void ControlRelay::letIn(bootstrap::PendingConnections& pending) {
  for (bootstrap::PendingConnections::Authenticated& joined : pending.serve()) {
    const auto rank = static_cast<Place>(joined.member.hello.rank);
    if (rank >= worldSize_ || ranks_.contains(rank)) continue;
    watchClosely(admit(rank, std::move(joined.stream)).socket());
    ++came_;
    passed_.add(rank, net::MessageType::Info, std::make_shared<const net::Bytes>());
    serveRank(rank);
  }
  if (came_ >= members_) pending_.reset();
}

// Who asks or proposes waits for an answer, and is told that it is under way.
void ControlRelay::hear(Place rank, net::Message message) {
  using net::MessageType;
  if (expectsWord(message)) {
    ranks_.at(rank).channel().send(MessageType::Roster, net::Bytes());
    told_.insert(rank);
  }
  if (message.type == MessageType::Bye) leaving_.insert(rank);
  passed_.add(rank, message.type, std::make_shared<const net::Bytes>(std::move(message.body)));
}

void ControlRelay::tellOfLoss(Place rank) {
  passed_.add(rank, net::MessageType::Ended,
              std::make_shared<const net::Bytes>(encode(lossOf(ranks_.at(rank)))));
}

void ControlRelay::passDown(net::Message message) {
  RankSet ranks;
  net::Message inner{};
  if (message.type != net::MessageType::Relayed ||
      !decodeRelayed(message.body, worldSize_, &ranks, &inner))
    return;
  const auto body = std::make_shared<const net::Bytes>(std::move(inner.body));
  ranks.forEach([&](Place rank) {
    const auto member = ranks_.find(rank);
    if (member == ranks_.end()) return;
    member->second.channel().send(inner.type, body);
    told_.insert(rank);
  });
}

void ControlRelay::tellCutOff() {
  const auto how = std::make_shared<const net::Bytes>(encode(lossOf(*up_)));
  for (auto& [rank, stream] : ranks_) {
    stream.channel().send(net::MessageType::Bye, how);
    told_.insert(rank);
  }
}

void ControlRelay::deliver() {
  do {
    for (net::Bytes& body : passed_.take())
      if (up_) up_->channel().send(net::MessageType::Relayed, std::move(body));
    flushUp();
    if (up_ && up_->channel().pending().empty()) sayGoodbye();
    for (const Place rank : std::exchange(told_, {})) flushRank(rank);
  } while (!passed_.empty() || !told_.empty());
}

// To those of whose good-bye the server has been told.
void ControlRelay::sayGoodbye() {
  for (const Place rank : std::set(leaving_)) {
    net::Stream& stream = ranks_.at(rank);
    stream.channel().send(net::MessageType::Bye, net::Bytes());
    (void)stream.flush();
    close(rank);
  }
}

// The server closes, once it has read all. To close first would take back what it has not, if
// something of its own is on its way here.
void ControlRelay::partFromServer() {
  const Deadline limit = Deadline::in(kPartingMs);
  up_->channel().send(net::MessageType::Bye, net::Bytes());
  while (up_->flush() && net::waitReadable(up_->socket(), limit) && up_->fill()) continue;
}

}  // namespace

Status startControlRelay(RelaySpec spec) {
  auto relay = std::make_shared<ControlRelay>(std::move(spec));
  WEFT_TRY(relay->isOpen());
  return net::ServiceThreads::get().start(
      "weft-ctl-relay", [relay](const net::StopSignal& stop) { relay->run(stop); });
}

}  // namespace weft::control
