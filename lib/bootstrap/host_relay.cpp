// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/host_relay.h"

#include <poll.h>

#include <iterator>
#include <utility>

namespace weft::bootstrap {
namespace {

constexpr std::uint64_t kUp = ~std::uint64_t{0};  // among those that are ready

}  // namespace

HostRelay::HostRelay(std::vector<net::Socket> listeners, const net::Key& secret,
                     std::int64_t handshakeMs, std::unique_ptr<net::Stream> up)
    : pending_(std::in_place, std::move(listeners), secret, handshakeMs), up_(std::move(up)) {}

Status HostRelay::isOpen() const {
  WEFT_TRY(pending_->isOpen());
  return ready_.isOpen();
}

void HostRelay::turn(const net::StopSignal* stop, Deadline limit) {
  wait(stop, limit);
  if (pending_) letIn(*pending_);
  for (const std::uint64_t id : ready_.take())
    if (id == kUp)
      serveUp();
    else
      serveRank(static_cast<Place>(id));
  deliver();
}

void HostRelay::wait(const net::StopSignal* stop, Deadline limit) {
  pollfd entries[] = {{stop ? stop->fd() : -1, POLLIN, 0},
                      {ready_.fd(), POLLIN, 0},
                      {pending_ ? pending_->fd() : -1, POLLIN, 0}};
  if (pending_) limit = limit.orSooner(pending_->nextWake());
  if (parting_) limit = limit.orSooner(*parting_);
  (void)::poll(entries, std::size(entries), soonest(limit).pollTimeoutMs());
}

net::Stream& HostRelay::admit(Place place, net::Stream stream) {
  return ranks_.emplace(place, std::move(stream)).first->second;
}

bool HostRelay::watchFor(net::Stream& stream, std::uint64_t id) {
  return stream.flush() &&
         ready_.watch(stream.socket().fd(), id, !stream.channel().pending().empty());
}

void HostRelay::flushUp() {
  if (up_ && !watchFor(*up_, kUp)) loseUp();
}

void HostRelay::flushRank(Place place) {
  if (!watchFor(ranks_.at(place), place)) loseRank(place);
}

void HostRelay::serveRank(Place place) {
  const auto rank = ranks_.find(place);
  if (rank == ranks_.end()) return;
  net::Stream& stream = rank->second;
  const bool alive = stream.fill();
  for (std::optional<net::Message> message;;) {
    if (!stream.channel().next(&message).ok()) return loseRank(place);
    if (!message) break;
    hear(place, std::move(*message));
  }
  if (!alive) return loseRank(place);
  flushRank(place);
}

void HostRelay::serveUp() {
  if (!up_) return;
  const bool alive = up_->fill();
  for (std::optional<net::Message> message;;) {
    if (!up_->channel().next(&message).ok()) return loseUp();
    if (!message) break;
    passDown(std::move(*message));
  }
  if (!alive) return loseUp();
  flushUp();
}

void HostRelay::loseRank(Place place) {
  if (!leaving_.contains(place)) tellOfLoss(place);
  close(place);
}

void HostRelay::close(Place place) {
  leaving_.erase(place);
  told_.erase(place);
  ready_.remove(ranks_.at(place).socket().fd());
  ranks_.erase(place);
}

// All hear it as if it had been their own connection, and close. To close first would take that word
// back, where something of theirs is not read yet.
void HostRelay::loseUp() {
  pending_.reset();
  parting_ = Deadline::in(kPartingMs);
  tellCutOff();
  ready_.remove(up_->socket().fd());
  up_.reset();
}

}  // namespace weft::bootstrap
