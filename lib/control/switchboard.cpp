// SPDX-License-Identifier: Apache-2.0
#include "control/switchboard.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <utility>

#include "base/text.h"
#include "control/bodies.h"
#include "watch/verdict.h"

namespace weft {
namespace {

using std::chrono::milliseconds;

// "4,5" or "rank 4".
std::string listOf(const std::vector<std::uint32_t>& ranks) {
  std::string line = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) line += text(i == 0 ? "" : ",", ranks[i]);
  return line;
}

}  // namespace

Status hasEnded(const PeerName& name) {
  return Status::error(Code::RemoteError,
                       text(describe(name),
                            " has ended: its connection closed; fix: look at that "
                            "rank's own output"));
}

std::string inSeconds(milliseconds span) {
  std::array<char, 32> line;
  std::snprintf(line.data(), line.size(), "%.1f s", static_cast<double>(span.count()) / 1000);
  return line.data();
}

Switchboard::Switchboard(std::vector<PeerName> names)
    : names_(std::move(names)), seats_(names_.size()) {}

void Switchboard::send(std::uint32_t rank, MessageType type, std::shared_ptr<const Bytes> body) {
  if (seats_[rank].here) outgoing_.push_back({rank, type, std::move(body)});
}

void Switchboard::broadcast(MessageType type, Bytes body) {
  const auto shared = std::make_shared<const Bytes>(std::move(body));
  for (std::uint32_t r = 0; r < seats_.size(); ++r) send(r, type, shared);
}

std::optional<Switchboard::Outgoing> Switchboard::take() {
  if (outgoing_.empty()) return std::nullopt;
  Outgoing next = std::move(outgoing_.front());
  outgoing_.pop_front();
  return next;
}

void Switchboard::seat(std::uint32_t rank) {
  seats_[rank].came = seats_[rank].here = true;
  ++came_;
  send(rank, MessageType::Roster, std::make_shared<const Bytes>());
}

bool Switchboard::nobodyHere() const {
  return std::ranges::none_of(seats_, [](const Seat& s) { return s.here; });
}

void Switchboard::query(std::uint32_t asker, Clock::time_point now) {
  seats_[asker].asks = true;
  if (!answerAt_) askAll(now);
}

// Whoever still owes an answer is not asked again: what nobody reads would fill its socket.
void Switchboard::askAll(Clock::time_point now) {
  answerAt_ = now + kAnswerPatience;
  const auto nothing = std::make_shared<const Bytes>();
  for (std::uint32_t r = 0; r < seats_.size(); ++r) {
    if (!seats_[r].here || seats_[r].owesSince) continue;
    seats_[r].owesSince = now;
    send(r, MessageType::Query, nothing);
  }
}

void Switchboard::report(std::uint32_t rank, const PageReport& page, Clock::time_point now) {
  seats_[rank].owesSince.reset();
  seats_[rank].page = page;
  const bool all =
      std::ranges::none_of(seats_, [](const Seat& s) { return s.here && s.owesSince; });
  if (answerAt_ && all) answerAskers(now);
}

void Switchboard::answerAskers(Clock::time_point now) {
  answerAt_.reset();
  const auto body = std::make_shared<const Bytes>(news(now));
  for (std::uint32_t r = 0; r < seats_.size(); ++r) {
    if (std::exchange(seats_[r].asks, false)) send(r, MessageType::Report, body);
  }
}

Bytes Switchboard::news(Clock::time_point now) const {
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

// The first holds. But a lost link may be mended, and any other cause puts an end to that.
void Switchboard::propose(const Status& cause) {
  if (verdict_ && !overrules(cause, *verdict_)) return;
  verdict_ = cause;
  broadcast(MessageType::Verdict, encode(cause));
  for (std::uint32_t r = 0; r < seats_.size(); ++r)
    if (hasLeft(r)) announceLeaver(r);
}

void Switchboard::gather(std::uint32_t rank, const Bytes& part) {
  broadcast(MessageType::Gathered, encode(Part{rank, false, part}));
}

// Who mends waits for all: it must know who does not come any more.
void Switchboard::announceLeaver(std::uint32_t rank) {
  if (verdict_ && isMendable(*verdict_))
    broadcast(MessageType::Gathered, encode(Part{rank, true, {}}));
}

// Whoever leaves without having destroyed its end, as a process does that exits, is awaited in
// vain.
void Switchboard::bye(std::uint32_t rank, Clock::time_point now) {
  Seat& seat = seats_[rank];
  if (!seat.page || !seat.page->left) return lose(rank, {}, now);
  seat.here = false;
  seat.owesSince.reset();
  announceLeaver(rank);
}

void Switchboard::lose(std::uint32_t rank, Loss loss, Clock::time_point now) {
  Seat& seat = seats_[rank];
  if (!seat.here) return;
  seat.here = false;
  seat.owesSince.reset();
  seat.loss = loss;
  seat.cut = loss.kind == Loss::Cut;
  const Clock::time_point when = now + (seat.cut ? kCutPatience : kLossPatience);
  announceAt_ = announceAt_ ? std::min(*announceAt_, when) : when;
}

void Switchboard::tick(Clock::time_point now) {
  if (answerAt_ && now >= *answerAt_) answerAskers(now);
  if (announceAt_ && now >= *announceAt_) announceLosses();
}

std::optional<Switchboard::Clock::time_point> Switchboard::nextTick() const {
  if (!answerAt_ || !announceAt_) return answerAt_ ? answerAt_ : announceAt_;
  return std::min(*answerAt_, *announceAt_);
}

void Switchboard::announceLosses() {
  announceAt_.reset();
  for (std::uint32_t r = 0; r < seats_.size(); ++r) {
    if (!seats_[r].loss) continue;
    // First what it did last, so that whoever hears of its end knows whether it is missed.
    if (seats_[r].page) broadcast(MessageType::Report, encode(News{{{r, 0, *seats_[r].page}}}));
    broadcast(MessageType::Ended, encode(Ending{r, lossText(r)}));
  }
  for (Seat& seat : seats_) seat.loss.reset();
}

std::string Switchboard::lossText(std::uint32_t rank) const {
  return seats_[rank].cut ? cutText(rank) : hasEnded(names_[rank]).text();
}

std::string Switchboard::cutText(std::uint32_t rank) const {
  const std::string& host = names_[rank].host;
  const std::string silence = inSeconds(seats_[rank].loss->silence);
  if (allOthersCut())
    return text("host ", host, " and all others unreachable from rank 0's host ", names_[0].host,
                " for ", silence, ": the uplink of host ", names_[0].host,
                " is down; fix: look at its network");
  return text("host ", host, " (", listOf(ranksOf(host)), ") unreachable for ", silence,
              ": host or its uplink is down; fix: look at that host and its network");
}

std::vector<std::uint32_t> Switchboard::ranksOf(const std::string& host) const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    if (names_[r].host == host) ranks.push_back(r);
  }
  return ranks;
}

// Of two or more other hosts; of one, either side may be the culprit.
bool Switchboard::allOthersCut() const {
  std::set<std::string> hosts;
  for (std::uint32_t r = 0; r < names_.size(); ++r) {
    if (names_[r].host == names_[0].host) continue;
    if (!seats_[r].cut) return false;
    hosts.insert(names_[r].host);
  }
  return hosts.size() > 1;
}

void Switchboard::beginToLeave(Clock::time_point now) {
  if (here(0)) askAll(now);
}

void Switchboard::leave(Clock::time_point now) {
  lose(0, {}, now);
  announceLosses();
  broadcast(MessageType::Bye, {});
}

}  // namespace weft
