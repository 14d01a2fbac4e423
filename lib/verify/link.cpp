// SPDX-License-Identifier: Apache-2.0
#include "verify/link.h"

#include <algorithm>

#include "base/text.h"

namespace weft::verify {
namespace {

std::string describe(const schedule::Op& op) {
  switch (op.kind) {
    case schedule::OpKind::Put:
      return text("Put ", nameOf(op.src, op.chunks), " to rank ", op.peer, "'s ",
                  nameOf(op.dst, op.chunks));
    case schedule::OpKind::Wait:
      return text("Wait ", nameOf(op.dst, op.chunks));
    case schedule::OpKind::Copy:
      return text("Copy ", nameOf(op.src, op.chunks), " to ", nameOf(op.dst, op.chunks));
    case schedule::OpKind::Reduce:
      return text("Reduce ", op.operands, " operands to ", nameOf(op.dst, op.chunks));
    case schedule::OpKind::Apply:
      return text(op.apply == schedule::ApplyId::Scale ? "Scale " : "Finish ",
                  nameOf(op.src, op.chunks), " to ", nameOf(op.dst, op.chunks));
  }
  return "?";
}

bool overlapPartially(schedule::Slot a, schedule::Slot b, uint32_t chunks) {
  if (a.buf != b.buf || a.index == b.index || a.owner != b.owner) return false;
  return a.index < b.index + chunks && b.index < a.index + chunks;
}

// The checks of single ops.
class Linker {
 public:
  explicit Linker(LinkedSchedule& linked) : l_(linked), s_(linked.schedule) {}

  Status run() {
    for (uint32_t r = 0; r < s_.ranks; ++r)
      for (uint32_t i = 0; i < l_.programs[r].ops.size(); ++i) WEFT_TRY(checkOp(r, i));
    collectPuts();
    WEFT_TRY(checkTargetsDiffer());
    for (uint32_t r = 0; r < s_.ranks; ++r)
      for (uint32_t i = 0; i < l_.programs[r].ops.size(); ++i)
        if (l_.op(r, i).kind == schedule::OpKind::Wait) WEFT_TRY(linkWait(r, i));
    for (const Message& m : l_.messages)
      if (m.waitOp == kNoMessage)
        return l_.violation(m.sender, m.putOp, "its arrival is never waited for");
    return {};
  }

 private:
  uint32_t slotsOf(uint32_t rank, schedule::Buf buf) const {
    switch (buf) {
      case schedule::Buf::In:
        return schedule::hasIn(s_.collective, s_.root, rank) ? s_.inChunks : 0;
      case schedule::Buf::Out:
        return schedule::hasOut(s_.collective, s_.root, rank) ? s_.outChunks : 0;
      case schedule::Buf::Tmp:
        return s_.tmpChunks;
      case schedule::Buf::Signal:
        return s_.signals;
    }
    return 0;
  }

  Status checkRun(uint32_t r, uint32_t i, uint32_t owner, schedule::Slot slot,
                  uint32_t chunks) const {
    const uint32_t slots = slotsOf(owner, slot.buf);
    if (slot.index < slots && chunks <= slots - slot.index) return {};
    return l_.violation(r, i, text("rank ", owner, " has no ", nameOf(slot, chunks)));
  }

  // What a Copy or a Reduce reads: an own slot, or an In slot of a peer.
  Status checkRead(uint32_t r, uint32_t i, schedule::Slot slot, uint32_t chunks) const {
    if (slot.owner == schedule::kMine) return checkRun(r, i, r, slot, chunks);
    if (slot.owner >= s_.ranks || slot.owner == r || slot.buf != schedule::Buf::In)
      return l_.violation(r, i, "of other ranks, only their In may be read");
    return checkRun(r, i, slot.owner, slot, chunks);
  }

  Status checkOp(uint32_t r, uint32_t i) const {
    const schedule::Op& op = l_.op(r, i);
    if (op.dst.owner != schedule::kMine ||
        (op.src.owner != schedule::kMine && op.kind != schedule::OpKind::Copy &&
         op.kind != schedule::OpKind::Reduce))
      return l_.violation(r, i, "only Copy and Reduce may name a peer's slot, to read it");
    if (op.isSignal()) return checkSignal(r, i, op);
    if (op.dst.buf == schedule::Buf::Signal || op.src.buf == schedule::Buf::Signal)
      return l_.violation(r, i, "a Signal slot has no bytes");
    if (op.shape >= s_.logicalChunks || op.chunks > s_.logicalChunks - op.shape)
      return l_.violation(r, i, text("there are only ", s_.logicalChunks, " logical chunks"));
    if (op.dst.buf == schedule::Buf::In) return l_.violation(r, i, "In is never written");
    if (op.kind == schedule::OpKind::Put) WEFT_TRY(checkPeer(r, i, op));
    WEFT_TRY(checkRun(r, i, op.kind == schedule::OpKind::Put ? op.peer : r, op.dst, op.chunks));
    if (op.kind == schedule::OpKind::Reduce) return checkOperands(r, i, op);
    WEFT_TRY(checkRead(r, i, op.src, op.chunks));
    if (op.kind != schedule::OpKind::Put && overlapPartially(op.src, op.dst, op.chunks))
      return l_.violation(r, i, "source and target overlap partially");
    return {};
  }

  Status checkSignal(uint32_t r, uint32_t i, const schedule::Op& op) const {
    if (op.kind != schedule::OpKind::Put && op.kind != schedule::OpKind::Wait)
      return l_.violation(r, i, "only Put and Wait may have no chunks");
    if (op.dst.buf != schedule::Buf::Signal)
      return l_.violation(r, i, "a signal goes to a Signal slot");
    if (op.kind == schedule::OpKind::Put) WEFT_TRY(checkPeer(r, i, op));
    return checkRun(r, i, op.peer, op.dst, 1);
  }

  Status checkPeer(uint32_t r, uint32_t i, const schedule::Op& op) const {
    if (op.peer < s_.ranks && op.peer != r) return {};
    return l_.violation(r, i, "a rank puts only to other ranks");
  }

  Status checkOperands(uint32_t r, uint32_t i, const schedule::Op& op) const {
    if (op.operands < 2) return l_.violation(r, i, "needs two operands or more");
    const schedule::Slot* operands = l_.operands(r, op);
    for (uint32_t k = 0; k < op.operands; ++k) {
      if (operands[k].buf == schedule::Buf::Signal)
        return l_.violation(r, i, "a Signal slot has no bytes");
      WEFT_TRY(checkRead(r, i, operands[k], op.chunks));
      if (overlapPartially(operands[k], op.dst, op.chunks))
        return l_.violation(r, i, text("operand ", k, " overlaps the target partially"));
    }
    return {};
  }

  // byTarget_ has all messages by receiver and target slot.
  void collectPuts() {
    for (uint32_t r = 0; r < s_.ranks; ++r) {
      l_.messageOf[r].assign(l_.programs[r].ops.size(), kNoMessage);
      for (uint32_t i = 0; i < l_.programs[r].ops.size(); ++i) {
        if (l_.op(r, i).kind != schedule::OpKind::Put) continue;
        l_.messageOf[r][i] = static_cast<uint32_t>(l_.messages.size());
        l_.messages.push_back({r, i});
      }
    }
    for (uint32_t m = 0; m < l_.messages.size(); ++m) {
      const schedule::Op& put = l_.op(l_.messages[m].sender, l_.messages[m].putOp);
      byTarget_.push_back({key(put.peer, put.dst), m});
    }
    std::sort(byTarget_.begin(), byTarget_.end());
  }

  Status checkTargetsDiffer() const {
    for (size_t k = 1; k < byTarget_.size(); ++k)
      if (byTarget_[k].key == byTarget_[k - 1].key) {
        const Message &a = l_.messages[byTarget_[k - 1].message],
                      &b = l_.messages[byTarget_[k].message];
        return l_.violation(b.sender, b.putOp,
                            "raises the same arrival as " + l_.where(a.sender, a.putOp));
      }
    return {};
  }

  Status linkWait(uint32_t r, uint32_t i) {
    const schedule::Op& wait = l_.op(r, i);
    const Target wanted{key(r, wait.dst), 0};
    const auto found = std::lower_bound(byTarget_.begin(), byTarget_.end(), wanted);
    if (found == byTarget_.end() || found->key != wanted.key)
      return l_.violation(r, i, "nobody puts there, so it waits for ever");
    Message& m = l_.messages[found->message];
    const schedule::Op& put = l_.op(m.sender, m.putOp);
    if (wait.peer != m.sender)
      return l_.violation(
          r, i, text("waits for rank ", wait.peer, ", but rank ", m.sender, " puts there"));
    if (put.chunks != wait.chunks)
      return l_.violation(r, i, "is not the run of " + l_.where(m.sender, m.putOp));
    if (put.shape != wait.shape)
      return l_.violation(r, i,
                          text("expects logical chunk ", wait.shape, ", but ",
                               l_.where(m.sender, m.putOp), " sends ", put.shape));
    if (m.waitOp != kNoMessage)
      return l_.violation(r, i, text("op ", m.waitOp, " has waited for this arrival already"));
    m.receiver = r;
    m.waitOp = i;
    l_.messageOf[r][i] = found->message;
    return {};
  }

  static constexpr uint64_t key(uint32_t rank, schedule::Slot slot) {
    return uint64_t{rank} << 34 | static_cast<uint64_t>(slot.buf) << 32 | slot.index;
  }
  struct Target {
    uint64_t key;
    uint32_t message;
    bool operator<(const Target& other) const {
      return key != other.key ? key < other.key : message < other.message;
    }
  };

  LinkedSchedule& l_;
  const schedule::Schedule& s_;
  std::vector<Target> byTarget_;
};

}  // namespace

std::string nameOf(schedule::Slot slot, uint32_t chunks) {
  constexpr const char* kNames[] = {"In(", "Out(", "Tmp(", "Signal("};
  std::string name = text(kNames[static_cast<size_t>(slot.buf)], slot.index);
  if (chunks > 1) name += text("..", slot.index + chunks - 1);
  return name + (slot.owner == schedule::kMine ? ")" : text(") of rank ", slot.owner));
}

std::string LinkedSchedule::where(uint32_t rank, uint32_t index) const {
  return text(schedule.name, ", ", schedule.ranks, " ranks, ",
              schedule::isRooted(schedule.collective) ? text("root ", schedule.root, ", ") : "",
              "rank ", rank, ", op ", index, " (", describe(op(rank, index)), ")");
}

Status LinkedSchedule::violation(uint32_t rank, uint32_t index, const std::string& what) const {
  return Status::error(Code::InternalError, text(where(rank, index), ": ", what));
}

Status link(const schedule::Schedule& schedule, LinkedSchedule& linked) {
  linked = {};
  linked.schedule = schedule;
  linked.messageOf.resize(schedule.ranks);
  for (uint32_t r = 0; r < schedule.ranks; ++r) linked.programs.push_back(schedule.program(r));
  return Linker(linked).run();
}

}  // namespace weft::verify
