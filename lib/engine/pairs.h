// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/waiter.h"
#include "reduce/reduce.h"
#include "transports/transport.h"
#include "watch/watch.h"

namespace weft {

// One send or receive of a batch.
struct PairOp {
  bool isSend = false;
  std::uint32_t peer = 0;
  std::byte* data = nullptr;  // a send only reads it
  std::uint64_t count = 0;
  DType type = DType::U8;
};

// Point-to-point transfers between pairs of ranks: all ops of a batch progress together, those of
// one pair and direction in order.
//
// Each ordered pair has kPairSlots landing slots at the receiver. A transfer is cut into pieces,
// piece e (counted over all transfers of the pair, from 1) uses slot e % kPairSlots once the
// receiver has returned that slot's credit for piece e - kPairSlots. The stamp carries count and
// type, so a receive that does not fit its send is told apart at the first piece. One thread at a
// time.
class Pairs {
 public:
  static constexpr std::uint32_t kPairSlots = 4;
  static constexpr std::size_t kSlotBytes = std::size_t{64} << 10;
  static constexpr std::uint32_t kCellsPerPeer = 2 * kPairSlots;  // arrivals, then credits

  Pairs(Transport& transport, Watch& watch, std::uint32_t rank, const WaitTuning& tuning);

  // Checks that sends and receives to oneself match, then runs all. Errors of usage have no effect.
  Status run(std::span<const PairOp> ops);

  // By peer: messages to it and from it that were begun here.
  const std::vector<std::uint64_t>& sends() const { return sends_; }
  const std::vector<std::uint64_t>& receives() const { return receives_; }

 private:
  struct Transfer {
    PairOp op;
    std::uint64_t bytes = 0;
    std::uint64_t done = 0;  // bytes moved
    bool finished = false;
  };
  enum class Step : std::uint8_t { Blocked, Moved, Broken };

  Status load(std::span<const PairOp> ops);
  Status copyToSelf();
  Step advance(Transfer& transfer);
  Step send(Transfer& transfer);
  Step receive(Transfer& transfer);
  Step putOrBlock(const Put& put);
  Step disagree(const Transfer& transfer, std::uint64_t stamp);
  Status passOnce(bool* moved);
  bool awaitedHere(const Seat& seat) const;
  Status idle();
  Status drain();

  Cell& arrival(std::uint32_t peer, std::uint64_t piece) const;
  Cell& credit(std::uint32_t peer, std::uint64_t piece) const;
  // Of the cell and slot that the peer keeps for this rank, as offsets in its segment.
  std::uint64_t peerCell(std::uint32_t index) const;
  std::uint64_t landing(std::uint32_t owner, std::uint64_t piece) const;

  Transport& transport_;
  Watch& watch_;
  const SegmentLayout& layout_;
  const std::uint32_t rank_;
  const WaitTuning tuning_;
  SegmentView own_;
  Waiter waiter_;
  std::vector<std::uint64_t> sends_, receives_;
  std::vector<std::uint64_t> sent_, received_;  // pieces, by peer
  std::vector<Transfer> transfers_;
  std::vector<bool> busySend_,
      busyReceive_;  // by peer, within a pass: an earlier transfer goes first
  Status broken_;
};

}  // namespace weft
