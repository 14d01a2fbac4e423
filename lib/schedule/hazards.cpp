// SPDX-License-Identifier: Apache-2.0
// Happens-before with vector clocks (Fidge 1988, Mattern 1989), used as race detectors do: see
// Flanagan and Freund, "FastTrack" (PLDI 2009).
#include "schedule/hazards.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "schedule/memory_map.h"
#include "schedule/walk.h"

namespace weft {
namespace {

using Clock = std::vector<uint32_t>;  // [thread]: how many of its ops are known to be through

void join(Clock& clock, const Clock& other) {
  for (size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

// An access by an op. A local one is through when the op is. One by a Put is through when the
// peer's Wait for `message` is; its read of the source also when its own invocation is complete.
struct Access {
  static constexpr size_t kLocal = ~size_t{0};
  uint32_t invocation, rank, op;
  size_t message = kLocal;
};

struct Location {
  bool written = false;
  Access write;
  std::vector<Access> reads;  // since the write
};

// The sender's clock when it issued a Put. Puts with no Wait between them share it, all but the
// sender's own time.
struct Issue {
  std::shared_ptr<const Clock> known;
  uint32_t time = 0;
};

class HazardCheck {
 public:
  HazardCheck(const LinkedSchedule& linked, const VerifyOptions& options)
      : l_(linked), s_(linked.schedule), options_(options), map_(s_, options.inPlace) {
    const size_t threads = size_t{s_.ranks} * options.invocations;
    clocks_.assign(threads, Clock(threads, 0));
    known_.resize(threads);
    issued_.resize(l_.messages.size() * options.invocations);
    waited_.assign(issued_.size(), 0);
    locations_.resize(threads * slotsPerThread());
  }

  Status run() {
    Walk walk(l_, options_.invocations, options_.creditRule, *this);
    WEFT_TRY(walk.run());
    WEFT_TRY(checkReadsOfPeers());
    return options_.agreement ? checkAgreement() : Status();
  }

  Status execute(ThreadId id, uint32_t index) {
    const Op& op = l_.op(id.rank, index);
    Clock& clock = clocks_[threadOf(id.invocation, id.rank)];
    if (index == 0) learnThatSlotsAreFree(id.invocation, id.rank, clock);
    clock[threadOf(id.invocation, id.rank)] = index + 1;
    switch (op.kind) {
      case OpKind::Put:
        return put(id, index, op, clock);
      case OpKind::Wait:
        return wait(id, index, op, clock);
      case OpKind::Reduce:
        for (uint32_t k = 0; k < op.operands; ++k)
          WEFT_TRY(access(id, index, l_.operands(id.rank, op)[k], false));
        return access(id, index, op.dst, true);
      case OpKind::Copy:
        if (isSelfCopy(id.rank, op)) return {};
        [[fallthrough]];
      case OpKind::Kernel:
        WEFT_TRY(access(id, index, op.src, false));
        return access(id, index, op.dst, true);
    }
    return {};
  }

 private:
  uint32_t threadOf(uint32_t invocation, uint32_t rank) const {
    return invocation * s_.ranks + rank;
  }
  size_t messageOf(ThreadId id, uint32_t index) const {
    return id.invocation * l_.messages.size() + l_.messageOf[id.rank][index];
  }
  bool isSelfCopy(uint32_t rank, const Op& op) const {
    return op.src.owner == kMine && map_.resolve(rank, op.src) == map_.resolve(rank, op.dst);
  }
  size_t slotsPerThread() const {
    return size_t{s_.inChunks} + s_.outChunks + s_.tmpChunks + s_.signals;
  }

  uint32_t completionTime(uint32_t rank) const {
    return static_cast<uint32_t>(l_.programs[rank].ops.size()) + 1;
  }

  // The engine's rule: before invocation e touches slots of `rank`, that rank completed e - depth.
  void learnThatSlotsAreFree(uint32_t invocation, uint32_t rank, Clock& clock) const {
    if (!options_.creditRule || invocation < kReuseDepth) return;
    const uint32_t before = threadOf(invocation - kReuseDepth, rank);
    join(clock, clocks_[before]);
    clock[before] = completionTime(rank);
  }

  // In and Out belong to one invocation; Tmp and Signal are shared by those that are a multiple of
  // kReuseDepth apart.
  Location& locationOf(uint32_t invocation, uint32_t rank, Slot slot) {
    if (slot.owner != kMine) rank = std::exchange(slot.owner, kMine);
    slot = map_.resolve(rank, slot);
    const bool reused = slot.buf == Buf::Tmp || slot.buf == Buf::Signal;
    const uint32_t thread = threadOf(reused ? invocation % kReuseDepth : invocation, rank);
    size_t offset = slot.index;
    if (slot.buf != Buf::In) offset += s_.inChunks;
    if (reused) offset += s_.outChunks;
    if (slot.buf == Buf::Signal) offset += s_.tmpChunks;
    return locations_[thread * slotsPerThread() + offset];
  }

  const std::shared_ptr<const Clock>& knownTo(uint32_t thread) {
    if (!known_[thread]) known_[thread] = std::make_shared<const Clock>(clocks_[thread]);
    return known_[thread];
  }

  Status put(ThreadId id, uint32_t index, const Op& op, Clock& clock) {
    learnThatSlotsAreFree(id.invocation, op.peer, clock);
    if (id.invocation >= kReuseDepth) known_[threadOf(id.invocation, id.rank)].reset();
    if (options_.outAfterEntry && op.dst.buf == Buf::Out &&
        clock[threadOf(id.invocation, op.peer)] == 0)
      return l_.violation(id.rank, index, "writes to Out before its owner has entered the call");
    const size_t message = messageOf(id, index);
    issued_[message] = {knownTo(threadOf(id.invocation, id.rank)), index + 1};
    const Access self{id.invocation, id.rank, index, message};
    for (uint32_t c = 0; c < op.chunks; ++c)
      WEFT_TRY(touch(locationOf(id.invocation, id.rank, op.src + c), self, false, clock));
    for (uint32_t c = 0; c < std::max(op.chunks, 1u); ++c)
      WEFT_TRY(touch(locationOf(id.invocation, op.peer, op.dst + c), self, true, clock));
    return {};
  }

  Status wait(ThreadId id, uint32_t index, const Op& op, Clock& clock) {
    const size_t message = messageOf(id, index);
    Issue& issue = issued_[message];
    const uint32_t sender = l_.messages[l_.messageOf[id.rank][index]].sender;
    uint32_t& sendersTime = clock[threadOf(id.invocation, sender)];
    join(clock, *issue.known);
    sendersTime = std::max(sendersTime, issue.time);
    issue.known.reset();
    known_[threadOf(id.invocation, id.rank)].reset();
    waited_[message] = index + 1;
    return access(id, index, op.dst, false);
  }

  Status access(ThreadId id, uint32_t index, Slot slot, bool write) {
    const Op& op = l_.op(id.rank, index);
    const uint32_t t = threadOf(id.invocation, id.rank);
    const Access self{id.invocation, id.rank, index};
    if (slot.owner != kMine) WEFT_TRY(enterPeer(self, slot.owner));
    for (uint32_t c = 0; c < std::max(op.chunks, 1u); ++c)
      WEFT_TRY(touch(locationOf(id.invocation, id.rank, slot + c), self, write, clocks_[t]));
    return {};
  }

  // A peer's buffer is there from its first op on, and until it has completed.
  Status enterPeer(const Access& read, uint32_t owner) {
    const Clock& clock = clocks_[threadOf(read.invocation, read.rank)];
    if (clock[threadOf(read.invocation, owner)] == 0)
      return l_.violation(read.rank, read.op, "reads In before its owner has entered the call");
    readsOfPeers_.push_back({read, owner});
    return {};
  }

  Status checkReadsOfPeers() const {
    for (const auto& [read, owner] : readsOfPeers_)
      if (!isThrough(read, false, clocks_[threadOf(read.invocation, owner)]))
        return l_.violation(read.rank, read.op,
                            text("rank ", owner, " may complete before this has read its In"));
    return {};
  }

  bool isThrough(const Access& a, bool write, const Clock& clock) const {
    const uint32_t own = clock[threadOf(a.invocation, a.rank)];
    if (a.message == Access::kLocal) return a.op < own;
    if (!write && own == completionTime(a.rank)) return true;
    const Message& m = l_.messages[a.message % l_.messages.size()];
    const uint32_t waited = waited_[a.message];
    return waited > 0 && waited <= clock[threadOf(a.invocation, m.receiver)];
  }

  bool sameOp(const Access& a, const Access& b) const {
    return a.rank == b.rank && a.op == b.op && a.invocation == b.invocation;
  }

  Status touch(Location& at, const Access& self, bool write, const Clock& clock) {
    if (at.written && !isThrough(at.write, true, clock))
      return race(self, at.write, write, "write");
    if (!write) {
      at.reads.push_back(self);
      return {};
    }
    for (const Access& read : at.reads)
      if (!sameOp(read, self) && !isThrough(read, false, clock))
        return race(self, read, true, "read");
    at.reads.clear();
    at.written = true;
    at.write = self;
    return {};
  }

  Status race(const Access& self, const Access& other, bool write, const char* othersKind) const {
    const std::string when =
        self.invocation == other.invocation
            ? std::string()
            : text(" of invocation ", other.invocation, " (this is ", self.invocation, ")");
    return l_.violation(self.rank, self.op,
                        text("its ", write ? "write" : "read", " races with the ", othersKind,
                             " by ", l_.where(other.rank, other.op), when));
  }

  Status checkAgreement() const {
    for (uint32_t t = 0; t < clocks_.size(); ++t)
      for (uint32_t r = 0; r < s_.ranks; ++r) {
        const uint32_t rank = t % s_.ranks;
        if (r == rank || clocks_[t][threadOf(t / s_.ranks, r)] > 0) continue;
        return Status::error(Code::InternalError,
                             text(s_.name, ", ", s_.ranks, " ranks: rank ", rank,
                                  " may complete before rank ", r, " has entered"));
      }
    return {};
  }

  const LinkedSchedule& l_;
  const Schedule& s_;
  const VerifyOptions& options_;
  const MemoryMap map_;
  std::vector<Clock> clocks_;                        // [thread]
  std::vector<std::shared_ptr<const Clock>> known_;  // [thread]: its clock after its last Wait
  std::vector<Issue> issued_;                        // [invocation][message], until the Wait
  std::vector<uint32_t> waited_;     // [invocation][message]: time of the Wait, 0 before
  std::vector<Location> locations_;  // [thread][In, Out, Tmp, Signal]
  std::vector<std::pair<Access, uint32_t>> readsOfPeers_;  // with the owner of what is read
};

}  // namespace

Status verifyHazards(const LinkedSchedule& linked, const VerifyOptions& options) {
  return HazardCheck(linked, options).run();
}

}  // namespace weft
