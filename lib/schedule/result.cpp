// SPDX-License-Identifier: Apache-2.0
#include "schedule/result.h"

#include <algorithm>
#include <utility>

#include "schedule/memory_map.h"
#include "schedule/values.h"
#include "schedule/walk.h"

namespace weft {
namespace {

// The sum over all ranks, in rank order, rounded once.
Value completeSum(uint32_t ranks) {
  Value v = inputOf(0, 0);
  v.input = false;
  for (uint32_t r = 1; r < ranks; ++r) {
    const Value x = inputOf(r, 0);
    v.sum = addSums(v.sum, x.sum);
    v.mix = addMixes(v.mix, x.mix);
  }
  if (ranks > 1) v.mix = roundMix(v.mix);
  return v;
}

class ResultCheck {
 public:
  ResultCheck(const LinkedSchedule& linked, const VerifyOptions& options)
      : l_(linked),
        s_(linked.schedule),
        options_(options),
        map_(s_, options.inPlace),
        total_(completeSum(s_.ranks)),
        slots_(size_t{s_.ranks} * 3) {
    for (uint32_t r = 0; r < s_.ranks; ++r)
      if (s_.inChunks > 0 && hasIn(s_.collective, s_.root, r)) fillIn(r);
  }

  Status run() {
    Walk walk(l_, 1, true, *this);
    WEFT_TRY(walk.run());
    for (uint32_t r = 0; r < s_.ranks; ++r)
      if (s_.outChunks > 0 && hasOut(s_.collective, s_.root, r)) WEFT_TRY(checkOut(r));
    return {};
  }

  Status execute(ThreadId thread, uint32_t index) {
    const uint32_t r = thread.rank;
    const Op& op = l_.op(r, index);
    if (op.isSignal()) return {};
    if (op.kind == OpKind::Wait) return arrive(r, index, op);
    if (op.kind == OpKind::Reduce) {
      WEFT_TRY(add(r, index, op));
    } else {
      WEFT_TRY(read(r, index, op.src, op, pieces_));
    }
    if (op.kind == OpKind::Kernel) WEFT_TRY(apply(r, index, op));
    if (op.kind == OpKind::Put) return put(r, index, op);
    return writeLocal(r, index, op);
  }

 private:
  Slots& slots(uint32_t rank, Slot& slot) {
    if (slot.owner != kMine) rank = std::exchange(slot.owner, kMine);
    slot = map_.resolve(rank, slot);
    return slots_[size_t{rank} * 3 + static_cast<size_t>(slot.buf)];
  }

  void fillIn(uint32_t r) {
    Slot first = in(0);
    Slots& at = slots(r, first);
    at.write(first.index, {{0, s_.inChunks, inputOf(r, logicalIn(s_.collective, r, 0))}});
  }

  // All pieces of a run: written, arrived, and of the logical chunks that the op says.
  Status read(uint32_t r, uint32_t index, Slot slot, const Op& op, Pieces& pieces) {
    const Slot named = slot;
    uint32_t missing = 0;
    if (!slots(r, slot).read(slot.index, op.chunks, pieces, missing))
      return l_.violation(
          r, index, text("reads ", nameOf(named + (missing - slot.index)), ", never written"));
    for (const Piece& p : pieces) {
      if (p.value.pending)
        return l_.violation(r, index, text("reads ", nameOf(named + p.first), " before its Wait"));
      if (p.value.chunk != op.shape + p.first && s_.collective != Collective::AllToAll)
        return l_.violation(r, index,
                            text(nameOf(named + p.first), " holds logical chunk ", p.value.chunk,
                                 ", not ", op.shape + p.first));
    }
    return {};
  }

  // pieces_ = the sum of all operands, formed from left to right and rounded once.
  Status add(uint32_t r, uint32_t index, const Op& op) {
    WEFT_TRY(read(r, index, l_.operands(r, op)[0], op, pieces_));
    for (uint32_t k = 1; k < op.operands; ++k) {
      WEFT_TRY(read(r, index, l_.operands(r, op)[k], op, other_));
      WEFT_TRY(addPieces(r, index));
    }
    for (Piece& p : pieces_) p.value.mix = roundMix(p.value.mix);
    return {};
  }

  // pieces_ = pieces_ + other_, on their common refinement.
  Status addPieces(uint32_t r, uint32_t index) {
    sum_.clear();
    for (size_t i = 0, j = 0; i < pieces_.size();) {
      const Piece &a = pieces_[i], &b = other_[j];
      const uint32_t begin = std::max(a.first, b.first);
      const uint32_t end = std::min(a.first + a.length, b.first + b.length);
      Value v = a.value.shifted(begin - a.first);
      const Value w = b.value.shifted(begin - b.first);
      if (v.chunk != w.chunk || v.scaled != w.scaled || v.finished || w.finished)
        return l_.violation(r, index, "adds chunks that do not belong together");
      v.sum = addSums(v.sum, w.sum);
      v.mix = addMixes(v.mix, w.mix);
      v.input = false;
      sum_.push_back({begin, end - begin, v});
      i += a.first + a.length == end;
      j += b.first + b.length == end;
    }
    pieces_.swap(sum_);
    return {};
  }

  Status apply(uint32_t r, uint32_t index, const Op& op) {
    for (Piece& p : pieces_) {
      Value& v = p.value;
      if (op.kernel == KernelId::Scale) {
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

  Status put(uint32_t r, uint32_t index, const Op& op) {
    Slot target = op.dst;
    Slots& at = slots(op.peer, target);
    const Slots::Range old = at.touching(target.index, op.chunks);
    for (size_t i = old.begin; i < old.end; ++i)
      if (!at.pieces()[i].value.input)
        return l_.violation(r, index, "writes a slot that is written already");
    for (Piece& p : pieces_) {
      p.value.pending = true;
      p.value.input = false;
    }
    at.write(target.index, pieces_);
    return {};
  }

  Status arrive(uint32_t r, uint32_t index, const Op& op) {
    Slot slot = op.dst;
    Slots& at = slots(r, slot);
    uint32_t missing = 0;
    if (!at.read(slot.index, op.chunks, pieces_, missing))
      return l_.violation(r, index, "its run was never written");
    for (Piece& p : pieces_) p.value.pending = false;
    at.write(slot.index, pieces_);
    return {};
  }

  // A local op may write a fresh slot, one that it reads, or (in place) an input.
  Status writeLocal(uint32_t r, uint32_t index, const Op& op) {
    Slot target = op.dst;
    Slots& at = slots(r, target);
    const Slots::Range old = at.touching(target.index, op.chunks);
    for (size_t i = old.begin; i < old.end; ++i) {
      const Value& v = at.pieces()[i].value;
      if (v.pending || (!v.input && !readsItsTarget(r, op)))
        return l_.violation(r, index, "writes a slot that is written already");
    }
    const bool keepsInput =
        op.kind == OpKind::Copy && op.src.owner == kMine && target == map_.resolve(r, op.src);
    for (Piece& p : pieces_) p.value.input &= keepsInput;
    at.write(target.index, pieces_);
    return {};
  }

  bool readsItsTarget(uint32_t r, const Op& op) const {
    if (op.kind != OpKind::Reduce) return op.src == op.dst;
    const Slot* operands = l_.operands(r, op);
    return std::find(operands, operands + op.operands, op.dst) != operands + op.operands;
  }

  Value expected(uint32_t r, uint32_t index) const {
    switch (s_.collective) {
      case Collective::Broadcast:
        return inputOf(s_.root, index);
      case Collective::AllGather:
        if (s_.made) return finishedInput(index);
        [[fallthrough]];
      case Collective::Gather:
        return inputOf(index, index);
      case Collective::Scatter:
        return inputOf(s_.root, r);
      case Collective::AllToAll:
        return inputOf(index, r);
      default:
        break;
    }
    Value v = total_;
    v.chunk = logicalOut(s_.collective, r, index);
    v.finished = true;
    return v;
  }

  static Value finishedInput(uint32_t rank) {
    Value v = inputOf(rank, rank);
    v.finished = true;
    return v;
  }

  Status checkOut(uint32_t r) {
    Slot first = out(0);
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
    if (options_.order == SumOrder::Rank && value.mix != want.mix)
      return wrong(r, index, "is not the sum in rank order");
    if (s_.collective == Collective::AllReduce) return checkReplica(r, index, value);
    return {};
  }

  Status checkReplica(uint32_t r, uint32_t index, const Value& value) {
    if (r == 0) replica_.push_back(value.mix);
    if (replica_[index] == value.mix) return {};
    return wrong(r, index, "has other bits than on rank 0: another order of additions");
  }

  Status wrong(uint32_t r, uint32_t index, const char* what) const {
    return Status::error(Code::InternalError,
                         text(s_.name, ", ", s_.ranks, " ranks, ",
                              isRooted(s_.collective) ? text("root ", s_.root, ", ") : "", "rank ",
                              r, ": at the end ", nameOf(out(index)), " ", what));
  }

  const LinkedSchedule& l_;
  const Schedule& s_;
  const VerifyOptions& options_;
  const MemoryMap map_;
  const Value total_;
  std::vector<Slots> slots_;       // [rank][In, Out, Tmp]
  std::vector<uint64_t> replica_;  // rank 0's mixes
  Pieces pieces_, other_, sum_;    // the run at work
};

}  // namespace

Status verifyResult(const LinkedSchedule& linked, const VerifyOptions& options) {
  return ResultCheck(linked, options).run();
}

}  // namespace weft
