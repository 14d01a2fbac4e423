// SPDX-License-Identifier: Apache-2.0
#include "control/control_state.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/deadline.h"
#include "base/text.h"
#include "control/bodies.h"
#include "watch/first_error.h"

namespace weft::control {

using std::chrono::milliseconds;

Status hasEnded(const PeerName& name) {
  return Status::error({.code = Code::RemoteError,
                        .who = name,
                        .what = "{who} has ended: its connection closed",
                        .fix = "look at that rank's own output"});
}

ControlState::ControlState(std::vector<PeerName> names)
    : names_(std::move(names)), seats_(names_.size()) {}

void ControlState::send(std::uint32_t rank, net::MessageType type,
                        std::shared_ptr<const net::Bytes> body) {
  if (seats_[rank].here) outgoing_.push_back({rank, type, std::move(body)});
}

void ControlState::broadcast(net::MessageType type, net::Bytes body) {
  const auto shared = std::make_shared<const net::Bytes>(std::move(body));
  for (std::uint32_t r = 0; r < seats_.size(); ++r) send(r, type, shared);
}

std::optional<ControlState::Outgoing> ControlState::take() {
  if (outgoing_.empty()) return std::nullopt;
  Outgoing next = std::move(outgoing_.front());
  outgoing_.pop_front();
  return next;
}

void ControlState::seat(std::uint32_t rank) {
  if (seats_[rank].came) return;
  seats_[rank].came = seats_[rank].here = true;
  ++came_;
  send(rank, net::MessageType::Roster, std::make_shared<const net::Bytes>());
}

bool ControlState::nobodyHere() const {
  return std::ranges::none_of(seats_, [](const Seat& s) { return s.here; });
}

void ControlState::query(std::uint32_t asker, Clock::time_point now) {
  seats_[asker].asks = true;
  if (!answerAt_) askAll(now);
}

// A rank that still owes an answer is not asked again: questions that it does not read would fill its
// socket.
void ControlState::askAll(Clock::time_point now) {
  answerAt_ = now + kAnswerPatience;
  const auto nothing = std::make_shared<const net::Bytes>();
  for (std::uint32_t r = 0; r < seats_.size(); ++r) {
    if (!seats_[r].here || seats_[r].owesSince) continue;
    seats_[r].owesSince = now;
    send(r, net::MessageType::Query, nothing);
  }
}

void ControlState::report(std::uint32_t rank, const PageReport& page, Clock::time_point now) {
  seats_[rank].owesSince.reset();
  seats_[rank].page = page;
  const bool all =
      std::ranges::none_of(seats_, [](const Seat& s) { return s.here && s.owesSince; });
  if (answerAt_ && all) answerAskers(now);
}

void ControlState::answerAskers(Clock::time_point now) {
  answerAt_.reset();
  const auto body = std::make_shared<const net::Bytes>(news(now));
  for (std::uint32_t r = 0; r < seats_.size(); ++r)
    if (std::exchange(seats_[r].asks, false)) send(r, net::MessageType::Report, body);
}

net::Bytes ControlState::news(Clock::time_point now) const {
  News news;
  for (std::uint32_t r = 0; r < seats_.size(); ++r) {
    const Seat& seat = seats_[r];
    if (!seat.page && !seat.owesSince) continue;
    const auto silence = seat.owesSince ? now - *seat.owesSince : Clock::duration::zero();
    const auto ms = std::chrono::duration_cast<milliseconds>(silence).count();
    news.entries.push_back({r, static_cast<std::uint32_t>(ms), seat.page.value_or(PageReport())});
  }
  return encode(news);
}

// The first holds. But a lost link can be recovered from, and any other cause puts an end to that.
void ControlState::propose(const Status& cause) {
  if (firstError_ && !watch::overrules(cause, *firstError_)) return;
  firstError_ = cause;
  broadcast(net::MessageType::Error, bootstrap::encode(cause));
  for (std::uint32_t r = 0; r < seats_.size(); ++r)
    if (hasLeft(r)) announceLeaver(r);
}

void ControlState::gather(std::uint32_t rank, const net::Bytes& part) {
  broadcast(net::MessageType::Gathered, encode(Part{rank, false, part}));
}

// A rank that recovers waits for all others, so it must know who will not come.
void ControlState::announceLeaver(std::uint32_t rank) {
  if (firstError_ && watch::isRecoverable(*firstError_))
    broadcast(net::MessageType::Gathered, encode(Part{rank, true, {}}));
}

// A rank that leaves without having destroyed its end (its process exits) counts as lost: others may
// wait for it.
void ControlState::bye(std::uint32_t rank, Clock::time_point now) {
  Seat& seat = seats_[rank];
  if (!seat.page || !seat.page->left) return lose(rank, {}, now);
  seat.here = false;
  seat.owesSince.reset();
  announceLeaver(rank);
}

void ControlState::lose(std::uint32_t rank, Loss loss, Clock::time_point now) {
  Seat& seat = seats_[rank];
  if (!seat.here) return;
  seat.here = false;
  seat.owesSince.reset();
  seat.loss = loss;
  seat.cut = loss.kind == Loss::Cut;
  const Clock::time_point when = now + (seat.cut ? kCutPatience : kLossPatience);
  announceAt_ = announceAt_ ? std::min(*announceAt_, when) : when;
}

void ControlState::tick(Clock::time_point now) {
  if (answerAt_ && now >= *answerAt_) answerAskers(now);
  if (announceAt_ && now >= *announceAt_) announceLosses();
}

std::optional<ControlState::Clock::time_point> ControlState::nextTick() const {
  if (!answerAt_ || !announceAt_) return answerAt_ ? answerAt_ : announceAt_;
  return std::min(*answerAt_, *announceAt_);
}

void ControlState::announceLosses() {
  announceAt_.reset();
  for (std::uint32_t r = 0; r < seats_.size(); ++r) {
    if (!seats_[r].loss) continue;
    // First what it did last, so that whoever hears of its end knows whether it is missed.
    if (seats_[r].page)
      broadcast(net::MessageType::Report, encode(News{{{r, 0, *seats_[r].page}}}));
    broadcast(net::MessageType::Ended, encode(Ending{r, endOf(r)}));
  }
  for (Seat& seat : seats_) seat.loss.reset();
}

Status ControlState::endOf(std::uint32_t rank) const {
  return seats_[rank].cut ? cutOf(rank) : hasEnded(names_[rank]);
}

Status ControlState::cutOf(std::uint32_t rank) const {
  const std::string& host = names_[rank].host;
  const std::string silence = inSeconds(seats_[rank].loss->silence);
  ErrorData data{.code = Code::RemoteError};
  if (allOthersCut()) {
    data.who.host = names_[0].host;
    data.what = text("host ", host, " and all others unreachable from rank 0's {who} for ", silence,
                     ": the uplink of {who} is down");
    data.fix = "look at its network";
  } else {
    data.who.host = host;
    data.missing = ranksOf(host);
    data.what = text("{who} ({missing}) unreachable for ", silence, ": host or its uplink is down");
    data.fix = "look at that host and its network";
  }
  return Status::error(std::move(data));
}

std::vector<std::uint32_t> ControlState::ranksOf(const std::string& host) const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t r = 0; r < names_.size(); ++r)
    if (names_[r].host == host) ranks.push_back(r);
  return ranks;
}

// With one other host nobody can tell which side is cut off, so it takes two.
bool ControlState::allOthersCut() const {
  std::set<std::string> hosts;
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    if (names_[r].host == names_[0].host) continue;
    if (!seats_[r].cut) return false;
    hosts.insert(names_[r].host);
  }
  return hosts.size() > 1;
}

void ControlState::beginToLeave(Clock::time_point now) {
  if (here(0)) askAll(now);
}

void ControlState::leave(Clock::time_point now) {
  lose(0, {}, now);
  announceLosses();
  broadcast(net::MessageType::Bye, {});
}

}  // namespace weft::control
