// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "control/bodies.h"
#include "control/call_tree.h"
#include "net/message_type.h"

namespace weft::control {

// Rounds of questions, at the server: whoever asks gets what all ranks do. A round serves all who
// ask meanwhile; those who do not ask are asked, and, where not all do the same, one of each group
// that does for its last calls. One thread.
class Questions {
 public:
  using Clock = std::chrono::steady_clock;
  using Send = std::function<void(std::uint32_t rank, net::MessageType type,
                                  std::shared_ptr<const net::Bytes> body)>;

  explicit Questions(std::size_t ranks) : seats_(ranks) {}

  void seat(std::uint32_t rank, std::optional<std::uint32_t> leader = {});
  // By another way, and perhaps without questions and answers that were on the old one.
  void comeBack(std::uint32_t rank, std::optional<std::uint32_t> leader);
  void leave(std::uint32_t rank);
  void query(std::uint32_t asker, const PageReport& page, Clock::time_point now);
  void report(std::uint32_t rank, const PageReport& page);
  // Asks and answers what is due.
  void tick(Clock::time_point now, const Send& send);
  std::optional<Clock::time_point> nextTick() const { return due_; }
  // One rank, outside of rounds.
  void ask(std::uint32_t rank, Clock::time_point now, const Send& send);

  // An answer is due from it.
  bool owes(std::uint32_t rank) const { return seats_[rank].owesSince.has_value(); }
  // What it did last, as far as it has told.
  const std::optional<PageReport>& page(std::uint32_t rank) const { return seats_[rank].page; }
  // The same of some ranks, in their order.
  News newsOf(std::span<const std::uint32_t> ranks) const;

  // For answers, before those that came are passed on without the rest; and then for calls.
  static constexpr std::chrono::milliseconds kAnswerPatience{5};
  static constexpr std::chrono::milliseconds kCallsPatience{10};
  // Whoever has owed an answer for so long is called silent.
  static constexpr std::chrono::milliseconds kSilence{1000};

 private:
  struct Seat {
    bool here = false;
    bool asks = false;                    // waits for news
    bool owesCalls = false;               // an answer with calls is due
    std::optional<std::uint32_t> leader;  // its relay's; it may be its own
    std::uint64_t heard = 0;              // the last round in which it said what it does
    std::optional<Clock::time_point> owesSince;
    std::optional<PageReport> page;
  };
  enum class Phase : std::uint8_t { Idle, Begun, States, Calls };

  void hear(std::uint32_t rank, const PageReport& page);
  void askStates(Clock::time_point now, const Send& send);
  bool askCalls(Clock::time_point now, const Send& send);
  void answer(Clock::time_point now, const Send& send);
  News allNews(Clock::time_point now) const;
  bool isSilent(std::uint32_t rank, Clock::time_point now) const;
  std::vector<bool> silentRelays(Clock::time_point now) const;

  // The bodies of questions; of this object, as its thread may outlive static ones.
  const std::shared_ptr<const net::Bytes> nothing_ = std::make_shared<const net::Bytes>();
  const std::shared_ptr<const net::Bytes> theCallsToo_ = std::make_shared<const net::Bytes>(1);
  std::vector<Seat> seats_;
  CallTree calls_;
  Phase phase_ = Phase::Idle;
  std::uint64_t round_ = 0;
  std::size_t here_ = 0;
  std::size_t unheard_ = 0;               // of those who are here, in this round
  std::size_t callsOwed_ = 0;             // by them
  std::optional<Clock::time_point> due_;  // while there is a round
};

}  // namespace weft::control
