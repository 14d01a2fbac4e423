// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bootstrap/messages.h"
#include "control/bodies.h"
#include "control/questions.h"
#include "watch/liveness.h"

namespace weft::control {

// The error for a rank whose connection closed without a good-bye.
Status hasEnded(const PeerName& name);

// What the server of a communicator's control link knows and decides, without any I/O: who is here,
// who wants to know what the others do, which error holds, who is gone. The server feeds it events
// and sends what it wants sent. One thread.
class ControlState {
 public:
  using Clock = Questions::Clock;

  using Loss = control::Loss;

  // One message to one rank.
  struct Outgoing {
    std::uint32_t rank = 0;
    net::MessageType type = net::MessageType::Query;
    std::shared_ptr<const net::Bytes> body;
  };

  // names[r] is rank r; the server lives in rank 0's process.
  explicit ControlState(std::vector<PeerName> names);
  ControlState(const ControlState&) = delete;
  ControlState& operator=(const ControlState&) = delete;

  // ---- events ----
  // Once: who has gone does not come back. `leader`: in whose process is the relay that it comes
  // through.
  void seat(std::uint32_t rank, std::optional<std::uint32_t> leader = {});
  // Its relay is gone: lost, if it does not come back soon, by a connection of its own.
  void orphan(std::uint32_t rank, Clock::time_point now);
  // It has done so, or its relay did not move; or it is back at that. Tells it what it may have missed.
  void comeBack(std::uint32_t rank, std::optional<std::uint32_t> leader = {});
  // Questions and answers go out with the next tick(): once for all that came meanwhile.
  void query(std::uint32_t asker, const PageReport& page, Clock::time_point now);
  void report(std::uint32_t rank, const PageReport& page);
  void propose(const Status& cause);
  void gather(std::uint32_t rank, const net::Bytes& part);
  void bye(std::uint32_t rank, Clock::time_point now);
  void lose(std::uint32_t rank, Loss loss, Clock::time_point now);
  // `moreSilence`: whether nothing has come from still others for longer than from who is well.
  using Silence = std::function<bool()>;
  void tick(Clock::time_point now, const Silence& moreSilence = {});
  // This process ends: asks rank 0, whose end it is, for what it did last. Over with leave().
  void beginToLeave(Clock::time_point now);
  bool mayLeave() const { return !here(0) || (askedLast_ && !questions_.owes(0)); }
  void leave(Clock::time_point now);

  // ---- what follows ----
  std::optional<Outgoing> take();
  // When tick() is wanted at the latest.
  std::optional<Clock::time_point> nextTick() const;
  bool here(std::uint32_t rank) const { return seats_[rank].here; }
  bool hasCome(std::uint32_t rank) const { return seats_[rank].came; }
  bool hasLeft(std::uint32_t rank) const { return seats_[rank].came && !seats_[rank].here; }
  bool everybodyCame() const { return came_ == seats_.size(); }
  bool nobodyHere() const;

  // For a better word than that a connection has ended: ranks of the same host see how.
  static constexpr std::chrono::milliseconds kLossPatience{50};
  // For ranks whose relay is gone to come back. None of them is named before, but who took the relay
  // along is.
  static constexpr std::chrono::milliseconds kOrphanPatience{5000};
  // After seconds of silence, for the others' to be noticed too: it may be this host that is cut. Where
  // others are silent as well, again and again until they have been heard or are lost: the kernel may
  // give up one connection seconds after another.
  static constexpr std::chrono::milliseconds kCutPatience{250};
  static constexpr std::chrono::milliseconds kMostCutPatience{4000};

 private:
  struct Seat {
    bool came = false;
    bool here = false;
    std::optional<Loss> loss;  // not yet told
    std::optional<Clock::time_point> cutAt;
    std::optional<Clock::time_point> orphanUntil;
  };

  void send(std::uint32_t rank, net::MessageType type, std::shared_ptr<const net::Bytes> body);
  void broadcast(net::MessageType type, net::Bytes body);
  void announceLeaver(std::uint32_t rank);
  bool mayBeThisHost(Clock::time_point now, const Silence& moreSilence) const;
  void announceLosses();
  void loseOrphans(Clock::time_point now);
  std::vector<Ending> endings() const;
  Status cutOf(std::uint32_t rank) const;
  std::vector<std::uint32_t> ranksOf(const std::string& host) const;
  bool allOthersCut() const;
  void askLast(Clock::time_point now);

  std::vector<PeerName> names_;
  std::vector<Seat> seats_;
  Questions questions_;
  const Questions::Send send_ = std::bind_front(&ControlState::send, this);
  std::size_t came_ = 0;
  bool leaves_ = false, askedLast_ = false;  // rank 0
  std::optional<Status> firstError_;
  std::vector<Ending> told_;
  std::optional<Clock::time_point> announceAt_;  // a loss is to be told
  std::optional<Clock::time_point> orphansAt_;   // one of them may have to be given up
  std::deque<Outgoing> outgoing_;
};

}  // namespace weft::control
