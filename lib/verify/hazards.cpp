// SPDX-License-Identifier: Apache-2.0
#include "verify/hazards.h"

#include <algorithm>
#include <utility>

#include "verify/memory.h"
#include "verify/order.h"
#include "verify/walk.h"

namespace weft::verify {
namespace {

// Every rank is an actor. A "byte" of a rank's history is a slot: of In, Out, Tmp, Signal.
class HazardCheck {
 public:
  HazardCheck(const LinkedSchedule& linked, const VerifyOptions& options)
      : l_(linked),
        s_(linked.schedule),
        options_(options),
        order_(s_.ranks),
        putOf_(l_.messages.size()),
        slots_(s_.ranks, History(s_.inChunks + s_.outChunks + s_.tmpChunks + s_.signals)) {}

  Status run() {
    Walk walk(l_, *this);
    WEFT_TRY(walk.run());
    WEFT_TRY(checkReadsOfPeers());
    return options_.agreement ? checkAgreement() : Status();
  }

  Status execute(uint32_t rank, uint32_t index) {
    const schedule::Op& op = l_.op(rank, index);
    order_.begin(rank, index);
    switch (op.kind) {
      case schedule::OpKind::Put:
        return put(rank, index, op);
      case schedule::OpKind::Wait:
        order_.await(rank, index, putOf_[l_.messageOf[rank][index]]);
        return access(rank, index, op.dst, false);
      case schedule::OpKind::Reduce:
        for (uint32_t k = 0; k < op.operands; ++k)
          WEFT_TRY(access(rank, index, l_.operands(rank, op)[k], false));
        return access(rank, index, op.dst, true);
      case schedule::OpKind::Copy:
      case schedule::OpKind::Apply:
        WEFT_TRY(access(rank, index, op.src, false));
        return access(rank, index, op.dst, true);
    }
    return {};
  }

 private:
  Status put(uint32_t rank, uint32_t index, const schedule::Op& op) {
    if (options_.outAfterEntry && op.dst.buf == schedule::Buf::Out && order_.of(rank)[op.peer] == 0)
      return l_.violation(rank, index, "writes to Out before its owner has entered the call");
    const Access self{rank, index, order_.put(rank, index)};
    putOf_[l_.messageOf[rank][index]] = self.put;
    if (!op.isSignal()) WEFT_TRY(touch(self, rank, op.src, false));
    return touch(self, op.peer, op.dst, true);
  }

  Status access(uint32_t rank, uint32_t index, schedule::Slot slot, bool write) {
    const Access self{rank, index};
    const uint32_t owner = std::exchange(slot.owner, schedule::kMine);
    if (owner == schedule::kMine) return touch(self, rank, slot, write);
    if (order_.of(rank)[owner] == 0)
      return l_.violation(rank, index, "reads In before its owner has entered the call");
    readsOfPeers_.push_back({self, owner});
    return touch(self, owner, slot, write);
  }

  // A peer's buffer is there until it has completed.
  Status checkReadsOfPeers() const {
    for (const auto& [read, owner] : readsOfPeers_)
      if (!order_.isThrough(read, false, order_.of(owner)))
        return l_.violation(read.actor, read.step,
                            text("rank ", owner, " may complete before this has read its In"));
    return {};
  }

  uint32_t indexOf(schedule::Slot slot) const {
    const uint32_t before[] = {0, s_.inChunks, s_.inChunks + s_.outChunks,
                               s_.inChunks + s_.outChunks + s_.tmpChunks};
    return before[static_cast<size_t>(slot.buf)] + slot.index;
  }

  // The op's run of slots of `rank`.
  Status touch(const Access& self, uint32_t rank, schedule::Slot first, bool write) {
    const uint32_t begin = indexOf(first);
    const uint32_t chunks = std::max(l_.op(self.actor, self.step).chunks, 1u);
    const auto open =
        slots_[rank].touch(begin, begin + chunks, self, write, order_, order_.of(self.actor));
    if (!open) return {};
    return l_.violation(
        self.actor, self.step,
        text("its ", write ? "write" : "read", " races with the ", open->write ? "write" : "read",
             " by ", l_.where(open->access.actor, open->access.step)));
  }

  Status checkAgreement() const {
    for (uint32_t rank = 0; rank < s_.ranks; ++rank)
      for (uint32_t r = 0; r < s_.ranks; ++r)
        if (r != rank && order_.of(rank)[r] == 0)
          return Status::error(Code::InternalError,
                               text(s_.name, ", ", s_.ranks, " ranks: rank ", rank,
                                    " may complete before rank ", r, " has entered"));
    return {};
  }

  const LinkedSchedule& l_;
  const schedule::Schedule& s_;
  const VerifyOptions& options_;
  Order order_;
  std::vector<uint32_t> putOf_;                            // by message
  std::vector<History> slots_;                             // by rank
  std::vector<std::pair<Access, uint32_t>> readsOfPeers_;  // with the owner of what is read
};

}  // namespace

Status verifyHazards(const LinkedSchedule& linked, const VerifyOptions& options) {
  return HazardCheck(linked, options).run();
}

}  // namespace weft::verify
