// SPDX-License-Identifier: Apache-2.0
#include "control/questions.h"

#include <map>
#include <utility>

#include "control/survey.h"

namespace weft::control {

using std::chrono::milliseconds;

void Questions::seat(std::uint32_t rank, std::optional<std::uint32_t> leader) {
  Seat& seat = seats_[rank];
  if (std::exchange(seat.here, true)) return;
  seat.leader = leader;
  ++here_;
  seat.heard = round_;  // whoever comes during a round is not asked in it
}

void Questions::comeBack(std::uint32_t rank, std::optional<std::uint32_t> leader) {
  Seat& seat = seats_[rank];
  seat.leader = leader;
  if (std::exchange(seat.owesCalls, false)) --callsOwed_;
  seat.owesSince.reset();
}

void Questions::leave(std::uint32_t rank) {
  Seat& seat = seats_[rank];
  if (!std::exchange(seat.here, false)) return;
  --here_;
  if (phase_ != Phase::Idle && seat.heard != round_) --unheard_;
  if (std::exchange(seat.owesCalls, false)) --callsOwed_;
  seat.owesSince.reset();
}

void Questions::hear(std::uint32_t rank, const PageReport& page) {
  Seat& seat = seats_[rank];
  seat.owesSince.reset();
  seat.page = page;
  seat.page->calls.clear();
  if (phase_ == Phase::Idle || std::exchange(seat.heard, round_) == round_) return;
  --unheard_;
}

void Questions::query(std::uint32_t asker, const PageReport& page, Clock::time_point now) {
  if (!seats_[asker].here) return;
  if (phase_ == Phase::Idle) {
    phase_ = Phase::Begun;
    ++round_;
    unheard_ = here_;
    due_ = now;
  }
  seats_[asker].asks = true;
  hear(asker, page);
}

void Questions::report(std::uint32_t rank, const PageReport& page) {
  Seat& seat = seats_[rank];
  if (!seat.here) return;
  if (seat.owesCalls && !page.calls.empty()) {
    calls_.add(page.calls);
    seat.owesCalls = false;
    --callsOwed_;
  }
  hear(rank, page);
}

void Questions::ask(std::uint32_t rank, Clock::time_point now, const Send& send) {
  if (!seats_[rank].here || seats_[rank].owesSince) return;
  seats_[rank].owesSince = now;
  send(rank, net::MessageType::Query, nothing_);
}

void Questions::tick(Clock::time_point now, const Send& send) {
  if (phase_ == Phase::Begun) askStates(now, send);
  if (phase_ == Phase::States && (unheard_ == 0 || now >= *due_) && !askCalls(now, send))
    answer(now, send);
  if (phase_ == Phase::Calls && (callsOwed_ == 0 || now >= *due_)) answer(now, send);
}

// A rank that still owes an answer is not asked again: questions that it does not read would fill its
// socket.
void Questions::askStates(Clock::time_point now, const Send& send) {
  phase_ = Phase::States;
  due_ = now + kAnswerPatience;
  for (std::uint32_t r = 0; r < seats_.size(); ++r)
    if (seats_[r].heard != round_) ask(r, now, send);
}

bool Questions::askCalls(Clock::time_point now, const Send& send) {
  Survey survey;
  for (std::uint32_t r = 0; r < seats_.size(); ++r)
    if (seats_[r].here && seats_[r].page) survey.add(r, *seats_[r].page);
  const auto ranks = survey.whomToAsk(calls_, [&](std::uint32_t r) { return !owes(r); });
  for (const std::uint32_t r : ranks) {
    seats_[r].owesSince = now;
    seats_[r].owesCalls = true;
    ++callsOwed_;
    send(r, net::MessageType::Query, theCallsToo_);
  }
  if (ranks.empty()) return false;
  phase_ = Phase::Calls;
  due_ = now + kCallsPatience;
  return true;
}

void Questions::answer(Clock::time_point now, const Send& send) {
  phase_ = Phase::Idle;
  due_.reset();
  const auto body = std::make_shared<const net::Bytes>(encode(allNews(now)));
  for (std::uint32_t r = 0; r < seats_.size(); ++r)
    if (std::exchange(seats_[r].asks, false)) send(r, net::MessageType::Report, body);
}

bool Questions::isSilent(std::uint32_t rank, Clock::time_point now) const {
  const auto& since = seats_[rank].owesSince;
  return since && now - *since >= kSilence;
}

// By leader: several ranks come through its process, and all of them are silent. Then it is that
// process which does not answer, and of the others nobody knows.
std::vector<bool> Questions::silentRelays(Clock::time_point now) const {
  std::vector<std::uint32_t> ranks(seats_.size()), silent(seats_.size());
  for (std::uint32_t r = 0; r < seats_.size(); ++r) {
    if (!seats_[r].here || !seats_[r].leader) continue;
    ++ranks[*seats_[r].leader];
    silent[*seats_[r].leader] += isSilent(r, now) ? 1u : 0u;
  }
  std::vector<bool> are(seats_.size());
  for (std::size_t r = 0; r < are.size(); ++r) are[r] = ranks[r] > 1 && silent[r] == ranks[r];
  return are;
}

News Questions::allNews(Clock::time_point now) const {
  const std::vector<bool> stuck = silentRelays(now);
  Survey survey;
  std::map<milliseconds, RankSet> silent;
  for (std::uint32_t r = 0; r < seats_.size(); ++r) {
    const Seat& seat = seats_[r];
    survey.add(r, seat.page.value_or(PageReport()));
    const bool unknown = seat.leader && *seat.leader != r && stuck[*seat.leader];
    if (isSilent(r, now) && !unknown)
      silent[std::chrono::duration_cast<milliseconds>(now - *seat.owesSince)].add(r);
  }
  News news = survey.news(calls_, true);
  news.settled = callsOwed_ == 0;
  for (const auto& [silence, ranks] : silent)
    news.silences.push_back({static_cast<std::uint32_t>(silence.count()), ranks});
  return news;
}

News Questions::newsOf(std::span<const std::uint32_t> ranks) const {
  Survey survey;
  for (const std::uint32_t r : ranks)
    if (seats_[r].page) survey.add(r, *seats_[r].page);
  return survey.news(calls_, false);
}

}  // namespace weft::control
