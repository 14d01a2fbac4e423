// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/progress.h"
#include "engine/team_work.h"
#include "reduce/reduce.h"
#include "transports/transport.h"
#include "tune/machine.h"
#include "watch/watch.h"

namespace weft::engine {

// One send or receive of a batch.
struct PairOp {
  bool isSend = false;
  std::uint32_t peer = 0;
  std::byte* data = nullptr;  // a send only reads it
  std::uint64_t count = 0;
  reduce::DType type = reduce::DType::U8;
};

// How long a message must be, in bytes, ...
struct PairTuning {
  std::uint64_t readMin = 0;    // to be read where it lies, if its receiver has it mapped
  std::uint64_t cmaMin = 0;     // to be read by CMA
  std::uint64_t streamMin = 0;  // to be stored past the cache
};
PairTuning tunePairs(const tune::Machine& machine);

// Point-to-point transfers between pairs of ranks: all ops of a batch progress together, those of
// one pair and direction in order.
//
// These are no plans: a rank knows its own half of a batch only, the next batch is another one, and
// its transfers go on in whatever order their peers come. What there is to prove is one pair:
//
// Each ordered pair has a ring of kPairSlots arrival slots at the receiver. Its pieces are counted
// over all transfers, from 1; piece e uses arrival slot e % kPairSlots once the receiver has
// returned the credit for piece e - kPairSlots. A piece is
//   - a payload in its arrival slot (kInlineBytes), or in the staging slot of that arrival slot;
//   - or an offer of all of a message: where it lies. Its receiver copies it from there to where it
//     belongs, and the credit tells the sender that it is done. So long messages are copied once.
// The tag carries count, type and, of a collective, the calls so far; so a receive that does not fit
// its send is told apart at the first piece. One thread at a time.
class Pairs {
 public:
  static constexpr std::uint32_t kPairSlots = 4;
  static constexpr std::uint32_t kArrivalsPerPeer = 2 * kPairSlots;  // arrivals, then credits

  // `crew`: shares the bytes of large messages that are read.
  Pairs(transport::Transport& transport, watch::Watch& watch, std::uint32_t rank,
        const WaitTuning& waiting, const PairTuning& tuning, const Crew& crew = {});

  // Checks that sends and receives to oneself match, then runs all. Errors of usage have no effect.
  Status run(std::span<const PairOp> ops);
  // As a collective that the watch has been told of: what comes from another call is a disagreement.
  Status runCollective(std::span<const PairOp> ops);

  // By peer: messages to it and from it that were begun here.
  const std::vector<std::uint64_t>& sends() const { return sends_; }
  const std::vector<std::uint64_t>& receives() const { return receives_; }

 private:
  // Where a message lies: its address in the sender, and a reference if that memory is shared.
  struct Offer {
    std::uint64_t address = 0;
    std::uint64_t reference = 0;
  };
  struct Transfer {
    PairOp op;
    std::uint64_t bytes = 0;
    std::uint64_t moved = 0;    // bytes in pieces that are put, or copied and credited
    std::uint64_t taken = 0;    // of a receive: bytes copied
    std::uint64_t offered = 0;  // of a send: the piece that is the offer of it
    Offer offer{};              // until the put has read it
    bool finished = false;
  };
  enum class Step : std::uint8_t { Blocked, Moved, Broken };
  friend class Progress;

  Status runAll();
  Status load(std::span<const PairOp> ops);
  std::uint64_t tagOf(const PairOp& op) const;
  Status runLoaded();
  Status runToTheEnd();
  bool isDoneAnyway();
  Status meet(std::uint32_t peer);
  Status copyToSelf();
  Status checkSelf(std::span<Transfer* const> sends, std::span<Transfer* const> receives) const;
  Status passOnce(bool* moved);
  Step send(Transfer& transfer);
  Step receive(Transfer& transfer);
  bool offers(Transfer& transfer);
  bool land(transport::Put& put);
  bool take(Transfer& transfer, const transport::ArrivalSlot& arrival, std::uint64_t end);
  bool read(Transfer& transfer, const transport::ArrivalSlot& arrival);
  template <class Copy>
  bool readByTeam(Transfer& transfer, const Copy& copy);
  double nsToReceive() const;
  Step putOrBlock(const transport::Put& put);
  Step disagree(const Transfer& transfer, std::uint64_t tag);
  Status disagreeInCall(const Transfer& transfer, std::uint64_t tag);
  bool fail(Status why);

  bool awaitsHere(const Seat& seat) const;
  bool ready() const;
  std::uint32_t waitingFor() const;
  watch::Watch::Needs needs() const;

  std::uint64_t nextPiece(const Transfer& t) const {
    return (t.op.isSend ? sent_ : received_)[t.op.peer] + 1;
  }
  bool arrived(std::uint32_t peer, std::uint64_t piece) const;
  bool credited(std::uint32_t peer, std::uint64_t piece) const;
  bool mayPut(std::uint32_t peer, std::uint64_t piece) const {
    return piece <= layout_.epochsBefore + kPairSlots || credited(peer, piece - kPairSlots);
  }
  // Here, for the peer; and at a peer, as offsets in its segment, for this rank.
  transport::ArrivalSlot& arrivalHere(std::uint32_t peer, std::uint64_t index) const {
    return own_.pairArrivals()[arrivalOf(peer, index)];
  }
  std::uint64_t arrivalThere(std::uint64_t index) const {
    return layout_.pairArrivals() + arrivalOf(rank_, index) * sizeof(transport::ArrivalSlot);
  }
  std::uint64_t arrivalOf(std::uint64_t writer, std::uint64_t index) const {
    return writer * (layout_.pairArrivalSlots / layout_.ranks) + layout_.ring + index;
  }
  std::uint64_t slot(std::uint32_t sender, std::uint64_t piece) const {
    return layout_.pairArena() + (sender * kPairSlots + piece % kPairSlots) * slotBytes_;
  }

  transport::Transport& transport_;
  watch::Watch& watch_;
  const transport::WindowLayout& layout_;
  const std::uint32_t rank_;
  const WaitTuning waiting_;
  const PairTuning tuning_;
  const std::uint64_t slotBytes_;
  transport::WindowView own_;
  Progress progress_;
  TeamWork work_;
  std::vector<std::uint64_t> sends_, receives_;
  std::vector<std::uint64_t> sent_, received_;  // pieces, by peer
  std::vector<bool> met_;                       // by peer: the pair's arrival slots have memory
  std::vector<std::uint64_t> landed_;  // by peer: bytes of each of its slots that have memory
  std::vector<Transfer> transfers_;
  // By peer, within a pass: an earlier transfer goes first.
  std::vector<bool> busySend_, busyReceive_;
  Status broken_;
  std::uint64_t call_ = 0;  // of a collective: what its tags say of it
};

}  // namespace weft::engine
