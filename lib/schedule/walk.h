// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <vector>

#include "base/text.h"
#include "schedule/link.h"

namespace weft {

// One rank's run through one invocation. Invocations in flight at once are independent threads.
struct ThreadId {
  uint32_t invocation, rank;
};

// Executes `invocations` invocations of a schedule in an order that respects program order,
// messages and, if `creditRule`, the engine's rule on running ahead (ir.h). Calls for every op, in
// that order,
//   Status visitor.execute(ThreadId, uint32_t op)
// and reports a deadlock with a rank that is stuck.
template <class Visitor>
class Walk {
 public:
  Walk(const LinkedSchedule& linked, uint32_t invocations, bool creditRule, Visitor& visitor)
      : l_(linked),
        ranks_(linked.schedule.ranks),
        creditRule_(creditRule),
        visitor_(visitor),
        next_(size_t{ranks_} * invocations, 0),
        arrived_(l_.messages.size() * invocations, false) {}

  Status run() {
    for (uint32_t t = 0; t < next_.size(); ++t) ready_.push_back(t);
    while (!ready_.empty()) {
      const uint32_t t = ready_.front();
      ready_.pop_front();
      WEFT_TRY(advance(t));
    }
    for (uint32_t t = 0; t < next_.size(); ++t)
      if (!finished(t)) return stuck(t);
    return {};
  }

 private:
  uint32_t invocationOf(uint32_t t) const { return t / ranks_; }
  uint32_t rankOf(uint32_t t) const { return t % ranks_; }
  bool finished(uint32_t t) const { return next_[t] == l_.programs[rankOf(t)].ops.size(); }

  // The thread whose completion gives `rank` its slots back for thread t's invocation.
  bool slotsFree(uint32_t t, uint32_t rank) const {
    const uint32_t e = invocationOf(t);
    return !creditRule_ || e < kReuseDepth || finished((e - kReuseDepth) * ranks_ + rank);
  }

  size_t arrival(uint32_t t) const {
    return invocationOf(t) * l_.messages.size() + l_.messageOf[rankOf(t)][next_[t]];
  }

  bool canExecute(uint32_t t) const {
    const Op& op = l_.op(rankOf(t), next_[t]);
    if (!slotsFree(t, rankOf(t))) return false;
    if (op.kind == OpKind::Put) return slotsFree(t, op.peer);
    return op.kind != OpKind::Wait || arrived_[arrival(t)];
  }

  Status advance(uint32_t t) {
    while (!finished(t) && canExecute(t)) {
      const Op& op = l_.op(rankOf(t), next_[t]);
      WEFT_TRY(visitor_.execute({invocationOf(t), rankOf(t)}, next_[t]));
      const size_t message = op.kind == OpKind::Put ? arrival(t) : 0;
      ++next_[t];
      if (op.kind == OpKind::Put) deliver(t, message);
    }
    if (finished(t) && creditRule_) wakeNextInvocation(t);
    return {};
  }

  void deliver(uint32_t t, size_t message) {
    arrived_[message] = true;
    const Message& m = l_.messages[message % l_.messages.size()];
    const uint32_t receiver = invocationOf(t) * ranks_ + m.receiver;
    if (next_[receiver] == m.waitOp) ready_.push_back(receiver);
  }

  void wakeNextInvocation(uint32_t t) {
    const size_t first = (size_t{invocationOf(t)} + kReuseDepth) * ranks_;
    for (size_t other = first; other < first + ranks_ && other < next_.size(); ++other)
      ready_.push_back(static_cast<uint32_t>(other));
  }

  Status stuck(uint32_t t) const {
    const uint32_t rank = rankOf(t);
    const Op& op = l_.op(rank, next_[t]);
    if (op.kind != OpKind::Wait) return l_.violation(rank, next_[t], "deadlock: no slots free");
    const Message& m = l_.messages[l_.messageOf[rank][next_[t]]];
    const uint32_t sender = invocationOf(t) * ranks_ + m.sender;
    return l_.violation(
        rank, next_[t],
        text("deadlock: waits for ", l_.where(m.sender, m.putOp), ", which is stuck at ",
             finished(sender) ? "its end" : l_.where(m.sender, next_[sender])));
  }

  const LinkedSchedule& l_;
  const uint32_t ranks_;
  const bool creditRule_;
  Visitor& visitor_;
  std::vector<uint32_t> next_;  // [thread]: its next op
  std::vector<bool> arrived_;   // [invocation][message]
  std::deque<uint32_t> ready_;  // threads that may be able to go on
};

}  // namespace weft
