// SPDX-License-Identifier: Apache-2.0
#include "engine/pairs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "transports/mapped/doorbell.h"

namespace weft {
namespace {

// What both ends must agree on, readable in the error.
std::uint64_t stampOf(const PairOp& op) {
  return op.count << 8 | static_cast<std::uint64_t>(op.type);
}

std::string describeStamp(std::uint64_t stamp) {
  return text("count=", stamp >> 8, ", ", name(static_cast<DType>(stamp & 0xff)));
}

}  // namespace

Pairs::Pairs(Transport& transport, Watch& watch, std::uint32_t rank, const WaitTuning& tuning)
    : transport_(transport),
      watch_(watch),
      layout_(transport.layout()),
      rank_(rank),
      tuning_(tuning),
      own_(transport.own()),
      waiter_(tuning_, own_.control(), !transport.caps().polls),
      sends_(layout_.ranks, 0),
      receives_(layout_.ranks, 0),
      sent_(layout_.ranks, 0),
      received_(layout_.ranks, 0),
      busySend_(layout_.ranks),
      busyReceive_(layout_.ranks) {}

Cell& Pairs::arrival(std::uint32_t peer, std::uint64_t piece) const {
  return own_.pairCells()[peer * kCellsPerPeer + piece % kPairSlots];
}

Cell& Pairs::credit(std::uint32_t peer, std::uint64_t piece) const {
  return own_.pairCells()[peer * kCellsPerPeer + kPairSlots + piece % kPairSlots];
}

std::uint64_t Pairs::peerCell(std::uint32_t index) const {
  return layout_.pairCells() + (rank_ * kCellsPerPeer + index) * sizeof(Cell);
}

std::uint64_t Pairs::landing(std::uint32_t owner, std::uint64_t piece) const {
  return layout_.pairArena() + (owner * kPairSlots + piece % kPairSlots) * kSlotBytes;
}

Status Pairs::load(std::span<const PairOp> ops) {
  transfers_.clear();
  for (const PairOp& op : ops) transfers_.push_back({op, op.count * sizeOf(op.type)});
  return copyToSelf();
}

// The k-th send to oneself meets the k-th receive from oneself.
Status Pairs::copyToSelf() {
  std::vector<Transfer*> sends, receives;
  for (Transfer& t : transfers_) {
    if (t.op.peer == rank_) (t.op.isSend ? sends : receives).push_back(&t);
  }
  if (sends.size() != receives.size())
    return Status::error(
        Code::InvalidUsage,
        text("rank ", rank_, " sends ", sends.size(), " and receives ", receives.size(),
             " messages to itself in one group; fix: match them"));
  for (std::size_t k = 0; k < sends.size(); ++k) {
    if (stampOf(sends[k]->op) != stampOf(receives[k]->op))
      return Status::error(
          Code::InvalidUsage,
          text("rank ", rank_, " sends (", describeStamp(stampOf(sends[k]->op)), ") and receives (",
               describeStamp(stampOf(receives[k]->op)), ") to itself; fix: same count and type"));
  }
  for (std::size_t k = 0; k < sends.size(); ++k) {
    if (sends[k]->bytes != 0)
      std::memmove(receives[k]->op.data, sends[k]->op.data, sends[k]->bytes);
    sends[k]->finished = receives[k]->finished = true;
  }
  return {};
}

Status Pairs::run(std::span<const PairOp> ops) {
  WEFT_TRY(load(ops));
  for (const PairOp& op : ops) ++(op.isSend ? sends_ : receives_)[op.peer];
  const Attendance attendance(transport_);
  waiter_.progressed();
  const auto unfinished = [](const Transfer& t) { return !t.finished; };
  while (std::ranges::any_of(transfers_, unfinished)) {
    bool moved = false;
    WEFT_TRY(passOnce(&moved));
    if (moved)
      waiter_.progressed();
    else
      WEFT_TRY(idle());
  }
  return drain();
}

// Each pair and direction advances by its first unfinished transfer.
Status Pairs::passOnce(bool* moved) {
  busySend_.assign(busySend_.size(), false);
  busyReceive_.assign(busyReceive_.size(), false);
  for (Transfer& t : transfers_) {
    if (t.finished) continue;
    std::vector<bool>& busy = t.op.isSend ? busySend_ : busyReceive_;
    if (busy[t.op.peer]) continue;
    busy[t.op.peer] = true;
    const Step step = advance(t);
    if (step == Step::Broken) return std::exchange(broken_, {});
    *moved = *moved || step == Step::Moved;
  }
  return {};
}

Pairs::Step Pairs::advance(Transfer& t) {
  Step last = Step::Blocked;
  while (!t.finished) {
    const Step step = t.op.isSend ? send(t) : receive(t);
    if (step != Step::Moved) return step == Step::Broken ? step : last;
    last = Step::Moved;
  }
  return last;
}

Pairs::Step Pairs::putOrBlock(const Put& put) {
  switch (transport_.put(put)) {
    case PutResult::Done:
    case PutResult::Pending:
      return Step::Moved;
    case PutResult::Again:
      return Step::Blocked;
    default:
      broken_ = watch_.lost(transport_.lastError());
      return Step::Broken;
  }
}

Pairs::Step Pairs::send(Transfer& t) {
  const std::uint32_t peer = t.op.peer;
  const std::uint64_t piece = sent_[peer] + 1;
  if (piece > kPairSlots &&
      epochOf(credit(peer, piece).word.load(std::memory_order_acquire)) != piece - kPairSlots)
    return Step::Blocked;
  Put put;
  put.peer = peer;
  put.cell = peerCell(static_cast<std::uint32_t>(piece % kPairSlots));
  put.word = arrivalWord(piece, piece);
  put.stamp = stampOf(t.op);
  put.src = t.op.data + t.done;
  put.bytes = std::min<std::uint64_t>(kSlotBytes, t.bytes - t.done);
  put.target = put.bytes <= kInlineBytes ? kInCell : landing(rank_, piece);
  const Step step = putOrBlock(put);
  if (step != Step::Moved) return step;
  sent_[peer] = piece;
  t.done += put.bytes;
  t.finished = t.done == t.bytes;
  return step;
}

Pairs::Step Pairs::disagree(const Transfer& t, std::uint64_t stamp) {
  broken_ = watch_.declare(Status::error(
      Code::Mismatch,
      text("mismatched point-to-point: ", watch_.nameOf(t.op.peer), " called send(",
           describeStamp(stamp), ") to ", watch_.nameOf(rank_), ", which called recv(",
           describeStamp(stampOf(t.op)), "); fix: same count and type on both sides")));
  return Step::Broken;
}

Pairs::Step Pairs::receive(Transfer& t) {
  const std::uint32_t peer = t.op.peer;
  const std::uint64_t piece = received_[peer] + 1;
  Cell& cell = arrival(peer, piece);
  if (epochOf(cell.word.load(std::memory_order_acquire)) != piece) return Step::Blocked;
  if (cell.stamp != stampOf(t.op)) return disagree(t, cell.stamp);
  const std::uint64_t bytes = std::min<std::uint64_t>(kSlotBytes, t.bytes - t.done);
  const std::byte* from = bytes <= kInlineBytes ? cell.inlined : own_.base() + landing(peer, piece);
  if (bytes != 0) std::memcpy(t.op.data + t.done, from, bytes);
  Put back;
  back.peer = peer;
  back.cell = peerCell(kPairSlots + static_cast<std::uint32_t>(piece % kPairSlots));
  back.word = arrivalWord(piece, piece);
  back.target = kInCell;
  const Step step = putOrBlock(back);
  if (step != Step::Moved) return step;  // the copy is made again: harmless, the slot is still ours
  received_[peer] = piece;
  t.done += bytes;
  t.finished = t.done == t.bytes;
  return step;
}

bool Pairs::awaitedHere(const Seat& seat) const {
  return std::ranges::any_of(transfers_, [&](const Transfer& t) {
    return !t.finished && seat.isShared(transport_.control(t.op.peer));
  });
}

Status Pairs::idle() {
  if (transport_.caps().polls) {
    Event events[16];
    for (int n = transport_.poll(events, 16); n > 0; --n) {
      if (events[n - 1].kind != Event::PutDone) return watch_.lost(transport_.lastError());
    }
  }
  const Waiter::Advice advice =
      waiter_.pause([this](const Seat& seat) { return awaitedHere(seat); });
  if (advice == Waiter::Advice::Poll) return {};
  std::uint32_t waitingFor = rank_;
  for (const Transfer& t : transfers_) {
    if (!t.finished) waitingFor = t.op.peer;
  }
  const auto needs = [this](std::uint32_t peer) {
    return std::ranges::any_of(
        transfers_, [peer](const Transfer& t) { return !t.finished && t.op.peer == peer; });
  };
  WEFT_TRY(watch_.trouble(waitingFor, needs));
  if (advice != Waiter::Advice::Sleep) return {};
  doorbellWait(own_.control(), waiter_.sleepTime(), [this] {
    return std::ranges::any_of(transfers_, [this](const Transfer& t) {
      if (t.finished) return false;
      const std::uint64_t piece = (t.op.isSend ? sent_ : received_)[t.op.peer] + 1;
      if (!t.op.isSend)
        return epochOf(arrival(t.op.peer, piece).word.load(std::memory_order_acquire)) == piece;
      return piece <= kPairSlots ||
             epochOf(credit(t.op.peer, piece).word.load(std::memory_order_acquire)) ==
                 piece - kPairSlots;
    });
  });
  return {};
}

// The sources belong to the caller again once no put reads them.
Status Pairs::drain() {
  while (transport_.outstanding() != 0) WEFT_TRY(idle());
  return {};
}

}  // namespace weft
