// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/meeting.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace weft {
namespace {

std::string secondsSince(Deadline::Clock::time_point start) {
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::Clock::now() - start);
  return text(ms.count() / 1000, '.', ms.count() % 1000 / 100, " s");
}

}  // namespace

// Opens the round with its first participant, and shortens its limit with each.
void Meeting::arrive(Deadline patience) {
  if (round_.arrived++ == 0) {
    round_.limit = patience;
    round_.began = Deadline::Clock::now();
    round_.warnAfterMs = timing_.firstWarnMs;
    round_.nextWarn = Deadline::in(timing_.firstWarnMs);
  }
  round_.limit = round_.limit.orSooner(patience);
}

Meeting::Seat Meeting::join(Member member, Deadline patience) {
  members_.push_back(std::move(member));
  left_.push_back(false);
  parts_.emplace_back();
  if (verdict_.ok()) {
    arrive(patience);
    checkNewest();
  }
  return members_.size() - 1;
}

// The same question as findConflict, asked of one more member only.
bool Meeting::newestAgrees() {
  const Member& first = members_.front();
  const Member& newest = members_.back();
  const auto size = static_cast<std::size_t>(first.hello.size);
  const auto rank = static_cast<std::size_t>(newest.hello.rank);
  rankTaken_.resize(size);
  if (newest.hello.size != first.hello.size || rank >= size || rankTaken_[rank]) return false;
  rankTaken_[rank] = true;
  return newest.hello.version == first.hello.version && newest.hello.wire == first.hello.wire &&
         newest.card.configText == first.card.configText;
}

void Meeting::checkNewest() {
  if (!settled_ && newestAgrees()) {
    if (members_.size() == rankTaken_.size()) convene();
    return;
  }
  // The text shall name all who disagree, and not depend on who came first: wait a little for the
  // rest.
  if (!settled_) settled_ = Deadline::in(timing_.settleMs);
  std::int32_t fewest = members_.front().hello.size;
  for (const Member& member : members_) fewest = std::min(fewest, member.hello.size);
  if (static_cast<std::int64_t>(members_.size()) >= fewest) decide(findConflict(members_));
}

void Meeting::convene() {
  seatOfRank_.resize(members_.size());
  for (Seat seat = 0; seat < members_.size(); ++seat) {
    seatOfRank_[static_cast<std::size_t>(members_[seat].hello.rank)] = seat;
  }
  std::vector<RankCard> cards;
  for (Seat seat : seatOfRank_) cards.push_back(members_[seat].card);
  broadcasts_.push_back({MessageType::Roster, std::make_shared<const Bytes>(encodeRoster(cards))});
  complete_ = true;
  roundNumber_ = 1;
  round_ = Round();
}

void Meeting::gather(Seat seat, GatherMessage message) {
  if (!verdict_.ok()) return;
  if (!complete_ || message.round != roundNumber_ || parts_[seat]) {
    return decide(Status::error(
        Code::Mismatch, text(describe(members_[seat].card), " is in set-up round ", message.round,
                             " while the others are in round ", roundNumber_)));
  }
  parts_[seat] = std::move(message.part);
  arrive(Deadline::in(message.patienceMs));
  if (round_.arrived == members_.size()) finishRound();
  refuseToWaitForTheGone();
}

void Meeting::finishRound() {
  std::vector<Bytes> parts;
  for (Seat seat : seatOfRank_) {
    parts.push_back(std::move(*parts_[seat]));
    parts_[seat].reset();
  }
  broadcasts_.push_back({MessageType::Gathered, std::make_shared<const Bytes>(encodeParts(parts))});
  ++roundNumber_;
  round_ = Round();
}

void Meeting::leave(Seat seat) {
  left_[seat] = true;
  refuseToWaitForTheGone();
}

// Leaving is fine until somebody needs another part of the one who left.
void Meeting::refuseToWaitForTheGone() {
  if (!verdict_.ok() || (complete_ && round_.arrived == 0)) return;
  const auto gone = std::find(left_.begin(), left_.end(), true);
  if (gone == left_.end()) return;
  const Member& member = members_[static_cast<Seat>(gone - left_.begin())];
  decide(Status::error(Code::RemoteError,
                       text(describe(member.card),
                            " left while others wait for it in set-up round ", roundNumber_)));
}

void Meeting::lose(Seat seat) {
  if (left_[seat] || !verdict_.ok() || settled_) return;
  left_[seat] = true;
  decide(Status::error(Code::RemoteError,
                       text(describe(members_[seat].card),
                            " died or closed its connection while the "
                            "communicator was being created. fix: see what ended that process")));
}

void Meeting::fail(Seat seat, const Status& why) {
  if (!verdict_.ok()) return;
  decide(Status::error(why.code(), text(describe(members_[seat].card), ": ", why.text())));
}

void Meeting::decide(Status verdict) {
  verdict_ = std::move(verdict);
  broadcasts_.push_back({MessageType::Verdict, std::make_shared<const Bytes>(encode(verdict_))});
}

void Meeting::tick() {
  if (!verdict_.ok()) return;
  if (settled_) {
    if (settled_->expired()) decide(findConflict(members_));
    return;
  }
  if (round_.arrived == 0) return;
  if (round_.limit.expired()) return giveUp();
  if (round_.nextWarn.expired()) warnAboutMissing();
}

Deadline Meeting::nextTick() const {
  const Deadline late = Deadline::in(60000);
  if (!verdict_.ok()) return late;
  if (settled_) return *settled_;
  return round_.arrived == 0 ? late : round_.limit.orSooner(round_.nextWarn);
}

std::vector<int> Meeting::missing() const {
  const auto size = static_cast<std::size_t>(members_[0].hello.size);
  std::vector<bool> here(size, false);
  for (Seat seat = 0; seat < members_.size(); ++seat) {
    if (!complete_ || parts_[seat])
      here[static_cast<std::size_t>(members_[seat].hello.rank)] = true;
  }
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (!here[rank]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

// "3 of 16 ranks: 5,9,12"
std::string Meeting::describeMissing() const {
  const std::vector<int> ranks = missing();
  return text(ranks.size(), " of ", members_[0].hello.size, " ranks: ", compactList(ranks));
}

void Meeting::warnAboutMissing() {
  logWarn("communicator creation: waiting for ", describeMissing(), " since ",
          secondsSince(round_.began), complete_ ? text(" (set-up round ", roundNumber_, ')') : "");
  round_.warnAfterMs *= 2;
  round_.nextWarn = Deadline::in(round_.warnAfterMs);
}

void Meeting::giveUp() {
  const std::string where =
      complete_ ? text("set-up round ", roundNumber_) : "communicator creation";
  decide(Status::error(Code::Timeout, text(where, " timed out after ", secondsSince(round_.began),
                                           " waiting for ", describeMissing(),
                                           ". fix: check that they were started and can reach this "
                                           "host, or raise WEFT_INIT_TIMEOUT_MS")));
}

std::optional<Meeting::Broadcast> Meeting::takeBroadcast() {
  if (broadcasts_.empty()) return std::nullopt;
  Broadcast first = std::move(broadcasts_.front());
  broadcasts_.erase(broadcasts_.begin());
  return first;
}

bool Meeting::everybodyCame() const {
  std::int32_t largest = 0;
  for (const Member& member : members_) largest = std::max(largest, member.hello.size);
  return !members_.empty() && static_cast<std::int64_t>(members_.size()) >= largest;
}

}  // namespace weft
