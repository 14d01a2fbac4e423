// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/conflicts.h"

namespace weft::bootstrap {

// What others say of a rank that ended too soon.
Status rankIsLost(const PeerName& who);

// What the root knows and decides about one communicator to be, without any I/O: who has joined,
// what they disagree about, who is missing, the rounds of the all-gather, and the one error that
// everybody gets. The root service feeds it events and sends what it wants broadcast. One thread.
class Rendezvous {
 public:
  struct Timing {
    std::int64_t firstWarnMs = 10000;  // until the first line about missing ranks; then doubling
    std::int64_t settleMs = 200;  // after a disagreement, for more of those concerned to show up
    std::int64_t hurriedMs = 50;  // who comes with less to a new round can't say who is late there
  };
  struct Broadcast {
    net::MessageType type;
    std::shared_ptr<const net::Bytes> body;
  };
  using Seat = std::size_t;  // of a member, in the order of joining

  explicit Rendezvous(const Timing& timing) : timing_(timing) {}

  // ---- events ----
  Seat join(Member member);
  void gather(Seat seat, GatherMessage message);
  void leave(Seat seat);                    // said good-bye
  void lose(Seat seat);                     // the connection ended without one
  void lose(const PeerName& who);           // nor will it join
  void fail(Seat seat, const Status& why);  // cannot go on
  void fail(const Status& why);             // nor can the root
  void tick();                              // time has passed

  // ---- what follows ----
  // To be sent to every member, the next one each call.
  std::optional<Broadcast> takeBroadcast();
  // Not OK once the rendezvous has failed; also for those who join later.
  const Status& failure() const { return failure_; }
  // All ranks have joined and agree: nobody else is expected.
  bool complete() const { return complete_; }
  // As many have joined as any of them expects.
  bool everybodyCame() const;
  bool empty() const { return members_.empty(); }
  // That of this very rank and process.
  std::optional<Seat> seatOf(const PeerName& who) const;
  // When tick() is wanted at the latest.
  Deadline nextTick() const;

 private:
  struct Round {
    Deadline limit = Deadline::in(0);  // the earliest of its participants'
    Deadline nextWarn = Deadline::in(0);
    std::int64_t warnAfterMs = 0;
    Deadline::Clock::time_point began;
    std::size_t arrived = 0;      // 0: the round has not begun
    std::optional<Seat> hurried;  // who came with hardly any time left
    std::string age() const;      // "3.1 s"
  };

  void arrive(Seat seat, std::int64_t patienceMs);
  bool newestAgrees();
  void checkNewest();
  void refuseToWaitForTheGone();
  void convene();
  void finishRound();
  void broadcast(net::MessageType type, net::Bytes body);
  void decide(Status failure);
  std::vector<std::uint32_t> missing() const;
  std::int32_t hubOfAll(const std::vector<std::uint32_t>& ranks) const;
  ErrorData waitingForMissing() const;
  ErrorData tookTooLong(Seat seat) const;
  void warnAboutMissing();
  void giveUp();

  Timing timing_;
  std::vector<Member> members_;
  std::vector<bool> left_;  // by seat
  std::vector<bool> rankTaken_;
  Round round_;
  std::uint32_t roundNumber_ = 0;                 // 0: the ranks join
  std::vector<std::optional<net::Bytes>> parts_;  // by seat
  std::vector<Seat> seatOfRank_;                  // once complete
  std::optional<Deadline> settled_;  // a disagreement is known; the error is decided then
  std::vector<Broadcast> broadcasts_;
  bool complete_ = false;
  Status failure_;
};

}  // namespace weft::bootstrap
