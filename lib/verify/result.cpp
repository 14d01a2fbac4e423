// SPDX-License-Identifier: Apache-2.0
#include "verify/result.h"

#include <algorithm>
#include <utility>

#include "verify/values.h"
#include "verify/walk.h"

namespace weft::verify {
namespace {

class ResultCheck {
 public:
  ResultCheck(const LinkedSchedule& linked, const VerifyOptions& options)
      : l_(linked),
        s_(linked.schedule),
        options_(options),
        total_(completeSum(0, s_.ranks)),
        slots_(size_t{s_.ranks} * 3) {
    for (uint32_t r = 0; r < s_.ranks; ++r)
      if (s_.inChunks > 0 && schedule::hasIn(s_.collective, s_.root, r)) fillIn(r);
  }

  Status run() {
    Walk walk(l_, *this);
    WEFT_TRY(walk.run());
    for (uint32_t r = 0; r < s_.ranks; ++r)
      if (s_.outChunks > 0 && schedule::hasOut(s_.collective, s_.root, r)) WEFT_TRY(checkOut(r));
    return {};
  }

  Status execute(uint32_t r, uint32_t index) {
    const schedule::Op& op = l_.op(r, index);
    if (op.isSignal()) return {};
    if (op.kind == schedule::OpKind::Wait) return arrive(r, index, op);
    if (op.kind == schedule::OpKind::Reduce) {
      WEFT_TRY(add(r, index, op));
    } else {
      WEFT_TRY(read(r, index, op.src, op, pieces_));
    }
    if (op.kind == schedule::OpKind::Apply) WEFT_TRY(apply(r, index, op));
    if (op.kind == schedule::OpKind::Put) return put(r, index, op);
    return writeLocal(r, index, op);
  }

 private:
  Slots& slots(uint32_t rank, schedule::Slot& slot) {
    if (slot.owner != schedule::kMine) rank = std::exchange(slot.owner, schedule::kMine);
    return slots_[size_t{rank} * 3 + static_cast<size_t>(slot.buf)];
  }

  void fillIn(uint32_t r) {
    schedule::Slot first = schedule::in(0);
    Slots& at = slots(r, first);
    at.write(first.index,
             {{0, s_.inChunks, inputOf(r, schedule::logicalIn(s_.collective, r, 0, s_.parts))}});
  }

  // All pieces of a run: written, arrived, and of the logical chunks that the op says.
  Status read(uint32_t r, uint32_t index, schedule::Slot slot, const schedule::Op& op,
              Pieces& pieces) {
    const schedule::Slot named = slot;
    uint32_t missing = 0;
    if (!slots(r, slot).read(slot.index, op.chunks, pieces, missing))
      return l_.violation(
          r, index, text("reads ", nameOf(named + (missing - slot.index)), ", never written"));
    for (const Piece& p : pieces) {
      if (p.value.pending)
        return l_.violation(r, index, text("reads ", nameOf(named + p.first), " before its Wait"));
      if (p.value.chunk != op.shape + p.first && s_.collective != schedule::Collective::AllToAll)
        return l_.violation(r, index,
                            text(nameOf(named + p.first), " holds logical chunk ", p.value.chunk,
                                 ", not ", op.shape + p.first));
    }
    return {};
  }

  // pieces_ = the sum of all operands, formed from left to right and rounded once.
  Status add(uint32_t r, uint32_t index, const schedule::Op& op) {
    WEFT_TRY(read(r, index, l_.operands(r, op)[0], op, pieces_));
    for (uint32_t k = 1; k < op.operands; ++k) {
      WEFT_TRY(read(r, index, l_.operands(r, op)[k], op, other_));
      if (!addTo(pieces_, other_))
        return l_.violation(r, index, "adds chunks that do not belong together");
    }
    for (Piece& p : pieces_) p.value.mix = roundMix(p.value.mix);
    return {};
  }

  Status apply(uint32_t r, uint32_t index, const schedule::Op& op) {
    for (Piece& p : pieces_) {
      Value& v = p.value;
      if (op.apply == schedule::ApplyId::Scale) {
        if (!v.input) return l_.violation(r, index, "scales what is not an input");
        v.input = false;
        v.scaled = true;
      } else {
        if (!s_.made && v.sum != total_.sum)
          return l_.violation(r, index, "finishes an incomplete sum");
        if (v.finished) return l_.violation(r, index, "finishes a sum twice");
        v.input = false;
        v.finished = true;
      }
    }
    return {};
  }

  Status put(uint32_t r, uint32_t index, const schedule::Op& op) {
    schedule::Slot target = op.dst;
    Slots& at = slots(op.peer, target);
    const Slots::Range old = at.touching(target.index, op.chunks);
    if (old.begin != old.end)
      return l_.violation(r, index, "writes a slot that is written already");
    for (Piece& p : pieces_) {
      p.value.pending = true;
      p.value.input = false;
    }
    at.write(target.index, pieces_);
    return {};
  }

  Status arrive(uint32_t r, uint32_t index, const schedule::Op& op) {
    schedule::Slot slot = op.dst;
    Slots& at = slots(r, slot);
    uint32_t missing = 0;
    if (!at.read(slot.index, op.chunks, pieces_, missing))
      return l_.violation(r, index, "its run was never written");
    for (Piece& p : pieces_) p.value.pending = false;
    at.write(slot.index, pieces_);
    return {};
  }

  // A local op may write a fresh slot, or one that it reads.
  Status writeLocal(uint32_t r, uint32_t index, const schedule::Op& op) {
    schedule::Slot target = op.dst;
    Slots& at = slots(r, target);
    const Slots::Range old = at.touching(target.index, op.chunks);
    for (size_t i = old.begin; i < old.end; ++i)
      if (at.pieces()[i].value.pending || !readsItsTarget(r, op))
        return l_.violation(r, index, "writes a slot that is written already");
    for (Piece& p : pieces_) p.value.input = false;
    at.write(target.index, pieces_);
    return {};
  }

  bool readsItsTarget(uint32_t r, const schedule::Op& op) const {
    if (op.kind != schedule::OpKind::Reduce) return op.src == op.dst;
    const schedule::Slot* operands = l_.operands(r, op);
    return std::find(operands, operands + op.operands, op.dst) != operands + op.operands;
  }

  Value expected(uint32_t r, uint32_t index) const {
    switch (s_.collective) {
      case schedule::Collective::Broadcast:
        return inputOf(s_.root, index);
      case schedule::Collective::AllGather:
        if (s_.made) return finishedInput(index / s_.parts, index);
        [[fallthrough]];
      case schedule::Collective::Gather:
        return inputOf(index / s_.parts, index);
      case schedule::Collective::Scatter:
        return inputOf(s_.root, schedule::logicalOut(s_.collective, r, index, s_.parts));
      case schedule::Collective::AllToAll:
        return inputOf(index / s_.parts, r * s_.parts + index % s_.parts);
      default:
        break;
    }
    Value v = total_;
    v.chunk = schedule::logicalOut(s_.collective, r, index, s_.parts);
    v.finished = true;
    return v;
  }

  static Value finishedInput(uint32_t rank, uint32_t chunk) {
    Value v = inputOf(rank, chunk);
    v.finished = true;
    return v;
  }

  Status checkOut(uint32_t r) {
    schedule::Slot first = schedule::out(0);
    Slots& at = slots(r, first);
    uint32_t missing = 0;
    if (!at.read(first.index, s_.outChunks, pieces_, missing))
      return wrong(r, missing - first.index, "was never written");
    for (const Piece& p : pieces_)
      for (uint32_t k = 0; k < p.length; ++k)
        WEFT_TRY(checkSlot(r, p.first + k, p.value.shifted(k)));
    return {};
  }

  Status checkSlot(uint32_t r, uint32_t index, const Value& value) {
    Value want = expected(r, index);
    if (value.chunk != want.chunk) return wrong(r, index, "holds another chunk");
    if (value.sum != want.sum) return wrong(r, index, "lacks, doubles or misplaces a contribution");
    if (value.finished != want.finished) return wrong(r, index, "is not finished");
    if (value.scaled != s_.scaled) return wrong(r, index, "is not scaled as it should be");
    if (options_.order == schedule::SumOrder::Rank && value.mix != want.mix)
      return wrong(r, index, "is not the sum in rank order");
    if (s_.collective == schedule::Collective::AllReduce) return checkReplica(r, index, value);
    return {};
  }

  Status checkReplica(uint32_t r, uint32_t index, const Value& value) {
    if (r == 0) replica_.push_back(value.mix);
    if (replica_[index] == value.mix) return {};
    return wrong(r, index, "has other bits than on rank 0: another order of additions");
  }

  Status wrong(uint32_t r, uint32_t index, const char* what) const {
    return Status::error(
        Code::InternalError,
        text(s_.name, ", ", s_.ranks, " ranks, ",
             schedule::isRooted(s_.collective) ? text("root ", s_.root, ", ") : "", "rank ", r,
             ": at the end ", nameOf(schedule::out(index)), " ", what));
  }

  const LinkedSchedule& l_;
  const schedule::Schedule& s_;
  const VerifyOptions& options_;
  const Value total_;
  std::vector<Slots> slots_;       // [rank][In, Out, Tmp]
  std::vector<uint64_t> replica_;  // rank 0's mixes
  Pieces pieces_, other_;          // the run at work
};

}  // namespace

Status verifyResult(const LinkedSchedule& linked, const VerifyOptions& options) {
  return ResultCheck(linked, options).run();
}

}  // namespace weft::verify
