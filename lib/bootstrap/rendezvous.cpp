// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/rendezvous.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace weft::bootstrap {
namespace {

std::int32_t sizeOf(const Member& member) { return member.hello.size; }

}  // namespace

Status rankIsLost(const PeerName& who) {
  return Status::error({.code = Code::RemoteError,
                        .who = who,
                        .what = "{who} died or closed its connection while the communicator was "
                                "being created.",
                        .fix = "see what ended that process"});
}

std::string Rendezvous::Round::age() const { return inSeconds(Deadline::Clock::now() - began); }

// Opens the round with its first participant, and shortens its limit with each.
void Rendezvous::arrive(Seat seat, std::int64_t patienceMs) {
  const Deadline patience = Deadline::in(patienceMs);
  if (round_.arrived++ == 0) {
    round_.limit = patience;
    round_.began = Deadline::Clock::now();
    round_.warnAfterMs = timing_.firstWarnMs;
    round_.nextWarn = Deadline::in(timing_.firstWarnMs);
  }
  round_.limit = round_.limit.orSooner(patience);
  const std::chrono::milliseconds hardlyAny(timing_.hurriedMs);
  const bool isYoung = Deadline::Clock::now() - round_.began < hardlyAny;
  if (patienceMs < timing_.hurriedMs && isYoung) round_.hurried = seat;
}

Rendezvous::Seat Rendezvous::join(Member member) {
  const std::int64_t patienceMs = member.info.patienceMs;
  left_.resize(members_.size() + 1);  // without memory for all of it there is no seat
  parts_.resize(members_.size() + 1);
  members_.push_back(std::move(member));
  if (failure_.ok()) {
    arrive(members_.size() - 1, patienceMs);
    checkNewest();
  }
  return members_.size() - 1;
}

// The same question as findConflict, asked of one more member only.
bool Rendezvous::newestAgrees() {
  const Member& first = members_.front();
  const Member& newest = members_.back();
  if (first.hello.size < 1 || first.hello.size > kMaxRanks) return false;
  const auto size = static_cast<std::size_t>(first.hello.size);
  const auto rank = static_cast<std::size_t>(newest.hello.rank);
  rankTaken_.resize(size);
  if (newest.hello.size != first.hello.size || rank >= size || rankTaken_[rank]) return false;
  rankTaken_[rank] = true;
  return newest.hello.version == first.hello.version && newest.hello.wire == first.hello.wire &&
         newest.info.configText == first.info.configText;
}

void Rendezvous::checkNewest() {
  if (!settled_ && newestAgrees()) {
    if (members_.size() == rankTaken_.size()) convene();
    return;
  }
  // The text shall name all who disagree, and not depend on who came first: wait a little for the
  // rest.
  if (!settled_) settled_ = Deadline::in(timing_.settleMs);
  const Hello& fewest = std::ranges::min_element(members_, {}, sizeOf)->hello;
  if (std::ssize(members_) >= fewest.size) decide(findConflict(members_));
}

void Rendezvous::convene() {
  seatOfRank_.resize(members_.size());
  for (Seat seat = 0; seat < members_.size(); ++seat)
    seatOfRank_[static_cast<std::size_t>(members_[seat].hello.rank)] = seat;
  std::vector<PeerName> names;
  for (Seat seat : seatOfRank_) names.push_back(members_[seat].info.who);
  broadcast(net::MessageType::Roster, encodeRoster(names));
  complete_ = true;
  roundNumber_ = 1;
  round_ = Round();
}

void Rendezvous::gather(Seat seat, GatherMessage message) {
  if (!failure_.ok()) return;
  if (!complete_ || message.round != roundNumber_ || parts_[seat]) {
    return decide(Status::error({.code = Code::Mismatch,
                                 .who = members_[seat].info.who,
                                 .what = text("{who} is in set-up round ", message.round,
                                              " while the others are in round ", roundNumber_)}));
  }
  parts_[seat] = std::move(message.part);
  arrive(seat, message.patienceMs);
  if (round_.arrived == members_.size()) finishRound();
  refuseToWaitForTheGone();
}

void Rendezvous::finishRound() {
  std::vector<net::Bytes> parts;
  for (Seat seat : seatOfRank_) {
    parts.push_back(std::move(*parts_[seat]));
    parts_[seat].reset();
  }
  broadcast(net::MessageType::Gathered, encodeParts(parts));
  ++roundNumber_;
  round_ = Round();
}

void Rendezvous::leave(Seat seat) {
  left_[seat] = true;
  refuseToWaitForTheGone();
}

// Leaving is fine until somebody needs another part of the one who left.
void Rendezvous::refuseToWaitForTheGone() {
  if (!failure_.ok() || (complete_ && round_.arrived == 0)) return;
  const auto gone = std::ranges::find(left_, true);
  if (gone == left_.end()) return;
  const Member& member = members_[static_cast<Seat>(gone - left_.begin())];
  decide(Status::error(
      {.code = Code::RemoteError,
       .who = member.info.who,
       .what = text("{who} left while others wait for it in set-up round ", roundNumber_)}));
}

void Rendezvous::lose(Seat seat) {
  if (left_[seat]) return;
  lose(members_[seat].info.who);
  left_[seat] = !settled_;
}

void Rendezvous::lose(const PeerName& who) {
  if (!failure_.ok() || settled_) return;
  decide(rankIsLost(who));
}

void Rendezvous::fail(Seat seat, const Status& why) {
  const PeerName& who = members_[seat].info.who;
  fail(within(text(who, ": "), who, why));
}

void Rendezvous::fail(const Status& why) {
  if (failure_.ok()) decide(why);
}

void Rendezvous::broadcast(net::MessageType type, net::Bytes body) {
  broadcasts_.push_back({type, std::make_shared<const net::Bytes>(std::move(body))});
}

void Rendezvous::decide(Status failure) {
  broadcast(net::MessageType::Error, encode(failure));
  failure_ = std::move(failure);
}

void Rendezvous::tick() {
  if (!failure_.ok()) return;
  if (settled_) {
    if (settled_->expired()) decide(findConflict(members_));
    return;
  }
  if (round_.arrived == 0) return;
  if (round_.limit.expired()) return giveUp();
  if (round_.nextWarn.expired()) warnAboutMissing();
}

Deadline Rendezvous::nextTick() const {
  const Deadline late = Deadline::in(60000);
  if (!failure_.ok()) return late;
  if (settled_) return *settled_;
  return round_.arrived == 0 ? late : round_.limit.orSooner(round_.nextWarn);
}

std::vector<std::uint32_t> Rendezvous::missing() const {
  const auto size = static_cast<std::size_t>(members_[0].hello.size);
  std::vector<bool> here(size, false);
  for (Seat seat = 0; seat < members_.size(); ++seat)
    if (!complete_ || parts_[seat])
      here[static_cast<std::size_t>(members_[seat].hello.rank)] = true;
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < size; ++rank)
    if (!here[rank]) ranks.push_back(rank);
  return ranks;
}

// The rank that all of these have their hub in, if it is one of them: it may be what they miss.
std::int32_t Rendezvous::hubOfAll(const std::vector<std::uint32_t>& ranks) const {
  if (!complete_ || ranks.size() < 2) return -1;
  const std::int32_t hub = members_[seatOfRank_[ranks[0]]].hub;
  const bool all = std::ranges::all_of(
      ranks, [&](std::uint32_t rank) { return members_[seatOfRank_[rank]].hub == hub; });
  return all && std::ranges::count(ranks, static_cast<std::uint32_t>(hub)) != 0 ? hub : -1;
}

// "waiting for 3 of 16 ranks: 5,9,12"
ErrorData Rendezvous::waitingForMissing() const {
  ErrorData data{.code = Code::Timeout, .missing = missing()};
  if (data.missing.size() == 1) data.who.rank = static_cast<int>(data.missing[0]);
  data.what =
      text("waiting for ", data.missing.size(), " of ", members_[0].hello.size, " ranks: {ranges}");
  if (const std::int32_t hub = hubOfAll(data.missing); hub >= 0) {
    data.who.rank = hub;
    data.what += text(", whom the process of rank ", hub, " connects");
  }
  return data;
}

void Rendezvous::warnAboutMissing() {
  logWarn("communicator creation: ", Status::error(waitingForMissing()).text(), " since ",
          round_.age(), complete_ ? text(" (set-up round ", roundNumber_, ')') : "");
  round_.warnAfterMs *= 2;
  round_.nextWarn = Deadline::in(round_.warnAfterMs);
}

ErrorData Rendezvous::tookTooLong(Seat seat) const {
  return {.code = Code::Timeout,
          .who = members_[seat].info.who,
          .what = text("{who} had hardly any time left when it came to set-up round ", roundNumber_,
                       " of the creation of a communicator."),
          .fix = "raise WEFT_INIT_TIMEOUT_MS, or see what keeps that process from running"};
}

void Rendezvous::giveUp() {
  if (complete_ && round_.hurried) return decide(Status::error(tookTooLong(*round_.hurried)));
  const std::string where =
      complete_ ? text("set-up round ", roundNumber_) : "communicator creation";
  ErrorData data = waitingForMissing();
  data.what = text(where, " timed out after ", round_.age(), " ", data.what, ".");
  data.fix = "check that they were started and can reach this host, or raise WEFT_INIT_TIMEOUT_MS";
  decide(Status::error(std::move(data)));
}

std::optional<Rendezvous::Broadcast> Rendezvous::takeBroadcast() {
  if (broadcasts_.empty()) return std::nullopt;
  Broadcast first = std::move(broadcasts_.front());
  broadcasts_.erase(broadcasts_.begin());
  return first;
}

std::optional<Rendezvous::Seat> Rendezvous::seatOf(const PeerName& who) const {
  for (Seat seat = 0; seat < members_.size(); ++seat)
    if (members_[seat].info.who == who) return seat;
  return std::nullopt;
}

bool Rendezvous::everybodyCame() const {
  if (members_.empty()) return false;
  const Hello& largest = std::ranges::max_element(members_, {}, sizeOf)->hello;
  return std::ssize(members_) >= largest.size;
}

}  // namespace weft::bootstrap
