// SPDX-License-Identifier: Apache-2.0
#include "control/link_end.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "base/threads.h"
#include "control/bodies.h"
#include "control/control_client.h"
#include "control/link_socket.h"
#include "watch/crowd.h"

namespace weft::control {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kByeMs = 1000;
constexpr std::size_t kMostMissed = 256;
constexpr milliseconds kRelayPatience{1000};
constexpr std::int64_t kAgesMs = std::int64_t{24} * 3600 * 1000;

// Longer where a relay may have to wait for a core, but not for long: to pass it costs little.
milliseconds relayPatience() {
  return std::chrono::duration_cast<milliseconds>(std::min(watch::crowd(), 4.0) * kRelayPatience);
}

}  // namespace

LinkEnd::LinkEnd(std::unique_ptr<net::Stream> stream, Reach reach,
                 std::shared_ptr<NewGroups> newGroups)
    : newGroups_(std::move(newGroups)),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stream_(std::move(stream)),
      reach_(std::move(reach)) {
  watchClosely(stream_->socket());
}

void LinkEnd::wake() {
  const std::uint64_t one = 1;
  (void)!::write(bell_.fd(), &one, sizeof one);
}

void LinkEnd::add(std::shared_ptr<ControlClient> client) {
  const std::lock_guard lock(shared_.mutex);
  const bool missed = missedMore_ || std::ranges::count(missed_, client->group()) != 0;
  if (missed) client->introduce();
  clients_.push_back(std::move(client));
  if (missed) wake();
}

bool LinkEnd::isGone() {
  const std::lock_guard lock(shared_.mutex);
  return shared_.gone;
}

void LinkEnd::dismiss() {
  const std::lock_guard lock(shared_.mutex);
  clients_.clear();
}

// ---- the thread ----

void LinkEnd::run(const net::StopSignal& stop) {
  const Status served = withoutExceptions([&]() -> Status {
    serve(stop);
    return {};
  });
  if (!served.ok() && stream_) fail(served);
  dismiss();
}

void LinkEnd::serve(const net::StopSignal& stop) {
  while (stream_) {
    wait(stop);
    takeWishes(stop.raised());
    receive();
    if (stream_ && !stream_->flush()) lose();
    if (relayDue_ && relayDue_->expired()) passStuckRelay();
    if (goodbye_ && goodbye_->expired() && !(reach_ && passRelay().ok())) stream_.reset();
  }
}

// Without memory, say: this rank tells why it hears no more, and the others if that can still be done. To
// close while something is on its way here would take that back, so the server is left to.
void LinkEnd::fail(const Status& why) {
  (void)withoutExceptions([&]() -> Status {
    logError("control link failed: ", why.text());
    const std::lock_guard lock(shared_.mutex);
    for (const auto& client : clients_) client->noteFailure(why, &stream_->channel());
    shared_.gone = true;
    shared_.changed.notify_all();
    return {};
  });
  (void)withoutExceptions([&]() -> Status {
    const Deadline limit = Deadline::in(kByeMs);
    (void)stream_->flush();
    (void)::shutdown(stream_->socket().fd(), SHUT_WR);
    while (net::waitReadable(stream_->socket(), limit) && stream_->fill()) continue;
    return {};
  });
  const std::lock_guard lock(shared_.mutex);
  stream_.reset();
  shared_.gone = true;
  shared_.changed.notify_all();
}

void LinkEnd::wait(const net::StopSignal& stop) {
  pollfd entries[] = {
      stream_->pollEntry(), {bell_.fd(), POLLIN, 0}, {goodbye_ ? -1 : stop.fd(), POLLIN, 0}};
  const Deadline limit = goodbye_.value_or(Deadline::in(kAgesMs));
  (void)::poll(entries, std::size(entries),
               relayDue_.value_or(limit).orSooner(limit).pollTimeoutMs());
  std::uint64_t rings = 0;
  (void)!::read(bell_.fd(), &rings, sizeof rings);
}

void LinkEnd::takeWishes(bool processEnds) {
  const std::lock_guard lock(shared_.mutex);
  net::Channel& channel = stream_->channel();
  bool expectsWord = false, stays = false;
  for (const auto& client : clients_) {
    expectsWord = client->speak(&channel) || expectsWord;
    stays = stays || !client->wantsToLeave();
  }
  if (reach_ && expectsWord && !relayDue_) {
    shared_.relayPatience = relayPatience();
    shared_.relaySince = Clock::now();
    relayDue_ = Deadline::in(shared_.relayPatience);
  }
  if (goodbye_) return;
  if (!stays || processEnds) return sayGoodbye();
  for (const auto& client : clients_) client->leaveGroup(&channel);
}

// For all of them.
void LinkEnd::sayGoodbye() {
  for (const auto& client : clients_) client->tellLast(&stream_->channel());
  stream_->channel().send(net::MessageType::Bye, net::Bytes());
  goodbye_ = Deadline::in(kByeMs);  // until the server has read it, and closes
}

void LinkEnd::receive() {
  const bool alive = stream_->fill();
  while (stream_) {
    std::optional<net::Message> message;
    if (!stream_->channel().next(&message).ok()) return lose();
    if (!message) break;
    handle(*message);
  }
  if (stream_ && !alive) lose();
}

void LinkEnd::handle(const net::Message& message) {
  const std::lock_guard lock(shared_.mutex);
  relayDue_.reset();
  shared_.relaySince.reset();
  Loss loss;
  std::uint32_t group = 0;
  net::Message inner{};
  if (message.type == net::MessageType::Bye) {
    if (decode(message.body, &loss) && !goodbye_) noteLossOfServer(loss);
    shared_.gone = true;
    stream_.reset();
  } else if (message.type != net::MessageType::Grouped) {
    handOver(0, message);
  } else if (decodeGrouped(message.body, &group, &inner)) {
    handOver(group, inner);
  }
  shared_.changed.notify_all();
}

// The server has heard the good-bye of one that answers so, which may be forgotten then.
void LinkEnd::handOver(std::uint32_t group, const net::Message& message) {
  const auto client =
      std::ranges::find_if(clients_, [group](const auto& each) { return each->group() == group; });
  if (client == clients_.end()) return noteMissed(group);
  if (message.type != net::MessageType::Bye)
    (*client)->handle(message, &stream_->channel());
  else if ((*client)->wantsToLeave())
    clients_.erase(client);
}

void LinkEnd::noteMissed(std::uint32_t group) {
  missed_.push_back(group);
  if (missed_.size() <= kMostMissed) return;
  missed_.pop_front();
  missedMore_ = true;
}

void LinkEnd::lose() {
  const Loss loss = lossOf(*stream_);
  if (reach_ && passLostRelay()) return;
  const std::lock_guard lock(shared_.mutex);
  stream_.reset();
  shared_.gone = true;
  if (!goodbye_ && reach_)
    noteOrphaned(true);
  else if (!goodbye_)
    noteLossOfServer(loss);
  shared_.changed.notify_all();
}

// To the server itself. What was on its way may be lost, so it is said again; what the server said,
// it repeats.
Status LinkEnd::passRelay() {
  std::unique_ptr<net::Stream> direct;
  WEFT_TRY(reach_(&direct));
  reach_ = nullptr;
  relayDue_.reset();
  stream_ = std::move(direct);
  watchClosely(stream_->socket());
  const std::lock_guard lock(shared_.mutex);
  shared_.relaySince.reset();
  shared_.orphanedSince.reset();
  for (const auto& client : clients_) client->sayAgain();
  goodbye_.reset();
  wake();
  return {};
}

// The server may have ended, too, and then nobody is told in time, unless it is said before the search
// ends.
bool LinkEnd::passLostRelay() {
  {
    const std::lock_guard lock(shared_.mutex);
    shared_.orphanedByRelay = true;
    shared_.orphanedSince = Clock::now() + relayPatience();
  }
  return passRelay().ok();
}

// Recovery waits for all ranks, the one that is stuck with the relay among them, and parts that are
// on their way must not be lost.
void LinkEnd::passStuckRelay() {
  relayDue_.reset();
  if (isRecovering() || passRelay().ok()) return;
  relayDue_ = Deadline::in(kRelayPatience);  // again
}

bool LinkEnd::isRecovering() {
  const std::lock_guard lock(shared_.mutex);
  return std::ranges::any_of(clients_, [](const auto& client) { return client->isRecovering(); });
}

// By the end of the rank in whose process it was, the server or the relay. In the second case the
// server could not be found, which may have had the best of reasons to end.
void LinkEnd::noteOrphaned(bool byRelay) {
  shared_.orphanedByRelay = byRelay;
  shared_.orphanedSince = Clock::now();
  for (const auto& client : clients_) client->noteOrphaned();
}

void LinkEnd::noteLossOfServer(const Loss& loss) {
  if (loss.kind == Loss::Closed) return noteOrphaned(false);
  for (const auto& client : clients_) client->noteCutOff(loss);
}

}  // namespace weft::control
