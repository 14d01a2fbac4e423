// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <vector>

#include "base/text.h"
#include "verify/link.h"

namespace weft::verify {

// Executes a schedule in an order that respects program order and messages. Calls for every op, in
// that order,
//   Status visitor.execute(uint32_t rank, uint32_t op)
// and reports a deadlock with a rank that is stuck.
template <class Visitor>
class Walk {
 public:
  Walk(const LinkedSchedule& linked, Visitor& visitor)
      : l_(linked),
        visitor_(visitor),
        next_(linked.schedule.ranks, 0),
        arrived_(linked.messages.size(), false) {}

  Status run() {
    for (uint32_t r = 0; r < next_.size(); ++r) ready_.push_back(r);
    while (!ready_.empty()) {
      const uint32_t r = ready_.front();
      ready_.pop_front();
      WEFT_TRY(advance(r));
    }
    for (uint32_t r = 0; r < next_.size(); ++r)
      if (!finished(r)) return stuck(r);
    return {};
  }

 private:
  bool finished(uint32_t r) const { return next_[r] == l_.programs[r].ops.size(); }

  bool canExecute(uint32_t r) const {
    return l_.op(r, next_[r]).kind != schedule::OpKind::Wait || arrived_[l_.messageOf[r][next_[r]]];
  }

  Status advance(uint32_t r) {
    while (!finished(r) && canExecute(r)) {
      const uint32_t index = next_[r]++;
      WEFT_TRY(visitor_.execute(r, index));
      if (l_.op(r, index).kind == schedule::OpKind::Put) deliver(l_.messageOf[r][index]);
    }
    return {};
  }

  void deliver(uint32_t message) {
    arrived_[message] = true;
    const Message& m = l_.messages[message];
    if (next_[m.receiver] == m.waitOp) ready_.push_back(m.receiver);
  }

  Status stuck(uint32_t r) const {
    const Message& m = l_.messages[l_.messageOf[r][next_[r]]];
    return l_.violation(r, next_[r],
                        text("deadlock: waits for ", l_.where(m.sender, m.putOp),
                             ", which is stuck at ", l_.where(m.sender, next_[m.sender])));
  }

  const LinkedSchedule& l_;
  Visitor& visitor_;
  std::vector<uint32_t> next_;  // by rank: its next op
  std::vector<bool> arrived_;   // by message
  std::deque<uint32_t> ready_;  // ranks that may be able to go on
};

}  // namespace weft::verify
