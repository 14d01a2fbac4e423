// SPDX-License-Identifier: Apache-2.0
#include "control/control_state.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/deadline.h"
#include "base/text.h"
#include "watch/first_error.h"

namespace weft::control {

using std::chrono::milliseconds;

namespace {

std::shared_ptr<const net::Bytes> shared(net::Bytes body) {
  return std::make_shared<const net::Bytes>(std::move(body));
}

}  // namespace

Status hasEnded(const PeerName& name) {
  return Status::error({.code = Code::RemoteError,
                        .who = name,
                        .what = "{who} has ended: its connection closed",
                        .fix = "look at that rank's own output"});
}

ControlState::ControlState(std::vector<PeerName> names)
    : names_(std::move(names)), seats_(names_.size()), questions_(names_.size()) {}

void ControlState::send(std::uint32_t rank, net::MessageType type,
                        std::shared_ptr<const net::Bytes> body) {
  if (seats_[rank].here) outgoing_.push_back({rank, type, std::move(body)});
}

void ControlState::broadcast(net::MessageType type, net::Bytes body) {
  const auto once = shared(std::move(body));
  for (std::uint32_t r = 0; r < seats_.size(); ++r) send(r, type, once);
}

std::optional<ControlState::Outgoing> ControlState::take() {
  if (outgoing_.empty()) return std::nullopt;
  Outgoing next = std::move(outgoing_.front());
  outgoing_.pop_front();
  return next;
}

void ControlState::seat(std::uint32_t rank, std::optional<std::uint32_t> leader) {
  if (seats_[rank].came) return;
  seats_[rank].came = seats_[rank].here = true;
  ++came_;
  questions_.seat(rank, leader);
  send(rank, net::MessageType::Roster, std::make_shared<const net::Bytes>());
}

void ControlState::orphan(std::uint32_t rank, Clock::time_point now) {
  if (!seats_[rank].here) return;
  const Clock::time_point until = now + kOrphanPatience;
  seats_[rank].orphanUntil = until;
  orphansAt_ = orphansAt_ ? std::min(*orphansAt_, until) : until;
}

void ControlState::comeBack(std::uint32_t rank, std::optional<std::uint32_t> leader) {
  if (!seats_[rank].here) return;
  seats_[rank].orphanUntil.reset();
  questions_.comeBack(rank, leader);
  send(rank, net::MessageType::Roster, std::make_shared<const net::Bytes>());
  std::vector<std::uint32_t> gone;
  for (std::uint32_t r = 0; r < seats_.size(); ++r)
    if (hasLeft(r)) gone.push_back(r);
  const News last = questions_.newsOf(gone);
  if (!last.groups.empty()) send(rank, net::MessageType::Report, shared(encode(last)));
  for (const Ending& ending : told_) send(rank, net::MessageType::Ended, shared(encode(ending)));
  if (!firstError_) return;
  send(rank, net::MessageType::Error, shared(bootstrap::encode(*firstError_)));
  for (const std::uint32_t r : gone)
    if (watch::isRecoverable(*firstError_))
      send(rank, net::MessageType::Gathered, shared(encode(Part{r, true, {}})));
}

bool ControlState::nobodyHere() const {
  return std::ranges::none_of(seats_, [](const Seat& s) { return s.here; });
}

void ControlState::query(std::uint32_t asker, const PageReport& page, Clock::time_point now) {
  questions_.query(asker, page, now);
}

void ControlState::report(std::uint32_t rank, const PageReport& page) {
  questions_.report(rank, page);
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
  const std::optional<PageReport>& page = questions_.page(rank);
  if (!page || !page->left) return lose(rank, {}, now);
  seats_[rank].here = false;
  seats_[rank].orphanUntil.reset();
  questions_.leave(rank);
  announceLeaver(rank);
}

void ControlState::lose(std::uint32_t rank, Loss loss, Clock::time_point now) {
  Seat& seat = seats_[rank];
  if (!seat.here) return;
  seat.here = false;
  seat.orphanUntil.reset();
  questions_.leave(rank);
  seat.loss = loss;
  if (loss.kind == Loss::Cut) seat.cutAt = now;
  const Clock::time_point when = now + (seat.cutAt ? kCutPatience : kLossPatience);
  announceAt_ = announceAt_ ? std::min(*announceAt_, when) : when;
}

void ControlState::tick(Clock::time_point now, const Silence& moreSilence) {
  askLast(now);
  questions_.tick(now, send_);
  if (orphansAt_ && now >= *orphansAt_) loseOrphans(now);
  if (!announceAt_ || now < *announceAt_) return;
  if (mayBeThisHost(now, moreSilence))
    announceAt_ = now + kCutPatience;
  else
    announceLosses();
}

// Who ended otherwise is told of at once, and with it all that there is to tell.
bool ControlState::mayBeThisHost(Clock::time_point now, const Silence& moreSilence) const {
  const auto waits = [now](const Seat& seat) {
    return !seat.loss || (seat.cutAt && now < *seat.cutAt + kMostCutPatience);
  };
  return moreSilence && std::ranges::all_of(seats_, waits) && moreSilence();
}

std::optional<ControlState::Clock::time_point> ControlState::nextTick() const {
  std::optional<Clock::time_point> next = questions_.nextTick();
  for (const auto& other : {announceAt_, orphansAt_})
    if (other) next = next ? std::min(*next, *other) : *other;
  return next;
}

void ControlState::loseOrphans(Clock::time_point now) {
  orphansAt_.reset();
  for (std::uint32_t r = 0; r < seats_.size(); ++r) {
    const auto until = seats_[r].orphanUntil;
    if (until && now >= *until)
      lose(r, {}, now);
    else if (until)
      orphansAt_ = orphansAt_ ? std::min(*orphansAt_, *until) : *until;
  }
}

// First what they did last, so that whoever hears of an end knows whether it is missed.
void ControlState::announceLosses() {
  announceAt_.reset();
  std::vector<std::uint32_t> lost;
  for (std::uint32_t r = 0; r < seats_.size(); ++r)
    if (seats_[r].loss) lost.push_back(r);
  const News last = questions_.newsOf(lost);
  if (!last.groups.empty()) broadcast(net::MessageType::Report, encode(last));
  for (Ending& ending : endings()) {
    broadcast(net::MessageType::Ended, encode(ending));
    told_.push_back(std::move(ending));
  }
  for (Seat& seat : seats_) seat.loss.reset();
}

// Those that are not told: of all whose connection closed, and of each host that is cut off.
std::vector<Ending> ControlState::endings() const {
  Ending closed;
  std::map<std::string, Ending> cut;
  for (std::uint32_t r = 0; r < seats_.size(); ++r) {
    if (!seats_[r].loss) continue;
    Ending& ending = seats_[r].cutAt ? cut[names_[r].host] : closed;
    if (seats_[r].cutAt && ending.ranks.empty()) ending.why = cutOf(r);
    ending.ranks.add(r);
  }
  std::vector<Ending> all;
  if (!closed.ranks.empty()) all.push_back(std::move(closed));
  for (auto& [host, ending] : cut) all.push_back(std::move(ending));
  return all;
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
    if (!seats_[r].cutAt) return false;
    hosts.insert(names_[r].host);
  }
  return hosts.size() > 1;
}

void ControlState::beginToLeave(Clock::time_point now) {
  leaves_ = true;
  askLast(now);
}

// An answer that is due already may tell what was so before.
void ControlState::askLast(Clock::time_point now) {
  if (!leaves_ || askedLast_ || questions_.owes(0)) return;
  askedLast_ = true;
  questions_.ask(0, now, send_);
}

void ControlState::leave(Clock::time_point now) {
  if (here(0)) bye(0, now);
  announceLosses();
  broadcast(net::MessageType::Bye, {});
}

}  // namespace weft::control
