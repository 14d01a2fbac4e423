// SPDX-License-Identifier: Apache-2.0
#include "verify/in_place.h"

#include <vector>

#include "base/text.h"

namespace weft::verify {
namespace {

// One rank's program, in its order.
class InPlaceCheck {
 public:
  InPlaceCheck(const LinkedSchedule& linked, uint32_t rank)
      : l_(linked), s_(linked.schedule), rank_(rank), written_(s_.outChunks, false) {}

  Status run() {
    const std::vector<schedule::Op>& ops = l_.programs[rank_].ops;
    for (uint32_t i = 0; i < ops.size(); ++i) {
      if (ops[i].isSignal() || ops[i].kind == schedule::OpKind::Wait) continue;
      WEFT_TRY(checkReads(i, ops[i]));
      if (ops[i].kind == schedule::OpKind::Put || ops[i].dst.buf != schedule::Buf::Out) continue;
      for (uint32_t k = 0; k < ops[i].chunks; ++k) written_[ops[i].dst.index + k] = true;
    }
    return {};
  }

 private:
  Status checkReads(uint32_t index, const schedule::Op& op) const {
    if (op.kind != schedule::OpKind::Reduce) return checkRead(index, op, op.src);
    for (uint32_t k = 0; k < op.operands; ++k)
      WEFT_TRY(checkRead(index, op, l_.operands(rank_, op)[k]));
    return {};
  }

  Status checkRead(uint32_t index, const schedule::Op& op, schedule::Slot slot) const {
    if (slot.buf != schedule::Buf::In || slot.owner != schedule::kMine) return {};
    for (uint32_t k = 0; k < op.chunks; ++k) {
      const uint32_t alias = schedule::inPlaceOut(s_.collective, rank_, slot.index + k, s_.parts);
      if (alias != schedule::kNoAlias && written_[alias])
        return l_.violation(rank_, index,
                            text("in place, ", nameOf(slot + k), " has been overwritten as ",
                                 nameOf(schedule::out(alias))));
    }
    return {};
  }

  const LinkedSchedule& l_;
  const schedule::Schedule& s_;
  const uint32_t rank_;
  std::vector<bool> written_;  // by Out slot
};

}  // namespace

Status verifyInPlace(const LinkedSchedule& linked) {
  if (!schedule::allowsInPlace(linked.schedule.collective)) return {};
  for (uint32_t rank = 0; rank < linked.schedule.ranks; ++rank)
    WEFT_TRY(InPlaceCheck(linked, rank).run());
  return {};
}

}  // namespace weft::verify
