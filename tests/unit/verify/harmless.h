// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "mutants.h"
#include "schedule/registry.h"

// Why a mutant that the proof accepts does no harm, decided from the ops themselves.
namespace weft::test {

enum class Harmless {
  NothingMoves,       // the op has no bytes, or as many as before
  MovesMore,          // beyond its own bytes, where nobody reads before others write
  NeighboursCommute,  // the two ops touch different bytes, or only read
  AddendsCommute,     // x0 + x1 = x1 + x0, or the order of additions is the algorithm's own
  Repeats,            // the op stores the same once more
  PastTheCache,       // how it is stored, not what
  DividesByOne,       // it would finish a sum that needs no finishing
  NotRead,            // what changes is read by nobody
  AnySignalClears,    // another signal of the same rank tells the same
  SameContent,        // In has been copied to Out: either may be read
  NothingPending,     // the op copies its source onto itself, or an arrival says that puts are read
  Unexplained,
  kCount,
};

class Explainer {
 public:
  // `plan` is changed, `before` is not.
  Explainer(const Mutant& mutant, const plan::Plan& plan, const std::vector<plan::BoundOp>& before,
            schedule::Collective collective, schedule::SumOrder order)
      : m_(mutant), plan_(plan), before_(before), collective_(collective), order_(order) {}

  Harmless why() const {
    const bool structure = m_.mutation == Mutation::DropOp || m_.mutation == Mutation::SwapOps;
    if (!structure && concernsBytes() && movesAlike()) return Harmless::NothingMoves;
    switch (m_.mutation) {
      case Mutation::SwapOps:
        return when(commute(plan_.ops[m_.op], plan_.ops[m_.op + 1]), Harmless::NeighboursCommute);
      case Mutation::DropOp:
        return when(isLocal(m_.before) && bytesOf(m_.before) == 0, Harmless::NothingMoves);
      case Mutation::SwapOperands:
        if (makesItsBlock()) return Harmless::NotRead;
        return when(m_.operand == 0 || order_ != schedule::SumOrder::Rank,
                    Harmless::AddendsCommute);
      case Mutation::RepeatOp:
        return when(isLocal(m_.before) && !readsItsTarget(), Harmless::Repeats);
      case Mutation::Stream:
        return Harmless::PastTheCache;
      case Mutation::Kind:
        if (m_.before.kind == plan::BoundOp::Kind::Raise ||
            m_.before.kind == plan::BoundOp::Kind::Signal)
          return Harmless::NotRead;
        [[fallthrough]];
      case Mutation::Finish:
        return when(plan_.divisor == 1 && !plan_.callsEpilogue, Harmless::DividesByOne);
      case Mutation::Divisor:
        return when(!divides(), Harmless::NotRead);
      case Mutation::ClearToSend:
        return when(isSignalOfPeer(), Harmless::AnySignalClears);
      case Mutation::Drain:
        return when(copiesInput() || waitsBefore(), Harmless::NothingPending);
      case Mutation::Length:
      case Mutation::Limit:
        return when(movesMore(), Harmless::MovesMore);
      case Mutation::SourceBase:
        return when(isCopied(), Harmless::SameContent);
      case Mutation::Opening:
        return when(!touchesOthers(), Harmless::NotRead);
      default:
        return when(makesItsBlock(), Harmless::NotRead);
    }
  }

 private:
  static Harmless when(bool so, Harmless why) { return so ? why : Harmless::Unexplained; }

  static bool isLocal(const plan::BoundOp& op) {
    return op.kind > plan::BoundOp::Kind::Wait || op.kind == plan::BoundOp::Kind::Store;
  }
  static bool readsSource(const plan::BoundOp& op) {
    using Kind = plan::BoundOp::Kind;
    return op.kind != Kind::Wait && op.kind != Kind::Raise && op.kind != Kind::Signal &&
           op.kind != Kind::Fold;
  }
  bool concernsBytes() const {
    return m_.mutation != Mutation::Peer && m_.mutation != Mutation::Arrival &&
           m_.mutation != Mutation::ClearToSend && m_.mutation < Mutation::Segment &&
           (isLocal(m_.before) || readsSource(m_.before)) &&
           (m_.mutation != Mutation::RepeatOp || isLocal(m_.before));
  }

  std::uint64_t lengthOf(const plan::BoundOp& op, std::uint64_t segment) const {
    const std::uint64_t shift = segment * plan_.segmentBytes;
    return std::min(op.limit > shift ? op.limit - shift : 0, op.max);
  }
  std::uint64_t bytesOf(const plan::BoundOp& op) const {
    std::uint64_t sum = 0;
    for (std::uint64_t s = 0; s < plan_.segments; ++s) sum += lengthOf(op, s);
    return sum;
  }
  // No bytes at all, or the same number in each segment where only that has changed.
  bool movesAlike() const {
    if (bytesOf(m_.before) == 0 && bytesOf(plan_.ops[m_.op]) == 0) return true;
    if (m_.mutation != Mutation::Length && m_.mutation != Mutation::Limit) return false;
    for (std::uint64_t s = 0; s < plan_.segments; ++s)
      if (lengthOf(m_.before, s) != lengthOf(plan_.ops[m_.op], s)) return false;
    return true;
  }

  struct Touched {
    plan::Place place;
    std::uint64_t bytes;
    bool write;
  };
  std::vector<Touched> touchedBy(const plan::BoundOp& op) const {
    std::vector<Touched> touched;
    const std::uint64_t bytes = std::min(op.max, op.limit);
    if (readsSource(op)) touched.push_back({op.src, bytes, false});
    if (!isLocal(op)) return touched;
    touched.push_back({op.dst, bytes, true});
    for (std::uint32_t k = 0; k < op.operands; ++k)
      touched.push_back({plan_.operands[op.first + k], bytes, false});
    for (std::uint32_t k = 0; k < op.spread; ++k)
      touched.push_back({plan_.operands[op.firstSpread + k], bytes, true});
    return touched;
  }
  static bool conflict(const Touched& a, const Touched& b) {
    return (a.write || b.write) && a.place.base == b.place.base && a.place.peer == b.place.peer &&
           a.place.offset < b.place.offset + b.bytes && b.place.offset < a.place.offset + a.bytes;
  }
  bool commute(const plan::BoundOp& a, const plan::BoundOp& b) const {
    for (const Touched& x : touchedBy(a))
      for (const Touched& y : touchedBy(b))
        if (conflict(x, y)) return false;
    return true;
  }
  bool readsItsTarget() const {
    for (const Touched& a : touchedBy(m_.before))
      for (const Touched& b : touchedBy(m_.before))
        if (a.write && !b.write && conflict(a, b)) return true;
    return false;
  }

  // Of an all-gather the epilogue reads no addend.
  bool makesItsBlock() const {
    return collective_ == schedule::Collective::AllGather && plan_.callsEpilogue &&
           m_.before.finish &&
           (m_.mutation == Mutation::Operand || m_.mutation == Mutation::OperandBase ||
            m_.mutation == Mutation::DropOperand || m_.mutation == Mutation::SwapOperands);
  }
  bool divides() const {
    return std::ranges::any_of(before_, [&](const plan::BoundOp& op) {
      const bool finishes = op.finish || op.kind == plan::BoundOp::Kind::Finish;
      return finishes && !plan_.callsEpilogue && bytesOf(op) != 0;
    });
  }
  bool isSignalOfPeer() const {
    const plan::BoundOp& put = plan_.ops[m_.op];
    return std::any_of(plan_.ops.begin(), plan_.ops.begin() + static_cast<std::ptrdiff_t>(m_.op),
                       [&](const plan::BoundOp& op) {
                         return op.kind == plan::BoundOp::Kind::Wait &&
                                op.arrival == put.clearToSend && op.peer == put.peer;
                       });
  }
  bool movesMore() const {
    for (std::uint64_t s = 0; s < plan_.segments; ++s)
      if (lengthOf(m_.before, s) > lengthOf(plan_.ops[m_.op], s)) return false;
    return true;
  }
  bool copiesInput() const {
    return m_.before.src.base == plan::Base::In && m_.before.dst.base == plan::Base::Out &&
           m_.before.kind != plan::BoundOp::Kind::Fold;
  }
  bool waitsBefore() const {
    return std::ranges::any_of(
        before_.begin(), before_.begin() + offset(),
        [](const plan::BoundOp& op) { return op.kind == plan::BoundOp::Kind::Wait; });
  }
  std::ptrdiff_t offset() const { return static_cast<std::ptrdiff_t>(m_.op); }
  // Has the other source been copied from this one, or this from the other?
  bool isCopied() const {
    const plan::Place &a = m_.before.src, &b = plan_.ops[m_.op].src;
    const auto isCopy = [&](const plan::BoundOp& op, const plan::Place& from,
                            const plan::Place& to) {
      const std::uint64_t skip = from.offset - op.src.offset;
      return op.kind == plan::BoundOp::Kind::Copy && op.src.base == from.base &&
             op.dst.base == to.base && from.offset >= op.src.offset &&
             to.offset == op.dst.offset + skip && skip + bytesOf(m_.before) <= bytesOf(op);
    };
    return std::any_of(before_.begin(), before_.begin() + offset(), [&](const plan::BoundOp& op) {
      return isCopy(op, a, b) || isCopy(op, b, a);
    });
  }
  // Does an op touch the buffers of a rank whose entry is not among those that are read now?
  bool touchesOthers() const {
    const auto opens = [&](std::uint32_t peer) {
      for (std::uint32_t i = plan_.tells; i < plan_.opening; ++i)
        if (before_[i].kind == plan::BoundOp::Kind::Wait && before_[i].peer == peer) return true;
      return false;
    };
    for (const plan::BoundOp& op : before_)
      for (const Touched& t : touchedBy(op))
        if (t.bytes != 0 && t.place.base >= plan::Base::PeerIn && !opens(t.place.peer)) return true;
    return false;
  }

  const Mutant& m_;
  const plan::Plan& plan_;
  const std::vector<plan::BoundOp>& before_;
  const schedule::Collective collective_;
  const schedule::SumOrder order_;
};

}  // namespace weft::test
