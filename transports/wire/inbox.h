// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "transports/wire/mailbox.h"
#include "transports/wire/notice.h"

namespace weft {

// The receiving half of a WireTransport: counts notices, and raises a cell when its put is whole.
class Inbox {
 public:
  Inbox(Mailbox mailbox, Cell* cells)
      : mailbox_(mailbox), cells_(cells), seen_(mailbox.cells(), 0) {}

  // The cell that is raised by it, if any.
  const Cell* take(Notice notice) {
    std::uint8_t& seen = seen_[notice.value];
    if (++seen < notice.count) return nullptr;
    seen = 0;
    return raise(notice.value);
  }
  // No peer of this weft sends others.
  bool makesSense(Notice notice) const { return notice.value < mailbox_.cells(); }

 private:
  const Cell* raise(std::uint32_t index) {
    const Mailbox::Record& record = mailbox_.arrived(index);
    Cell& cell = cells_[index];
    cell.stamp = record.stamp;
    std::copy(std::begin(record.inlined), std::end(record.inlined), cell.inlined);
    cell.word.store(record.word, std::memory_order_release);
    return &cell;
  }

  Mailbox mailbox_;
  Cell* cells_;
  std::vector<std::uint8_t> seen_;  // by cell: notices of the put that is arriving
};

}  // namespace weft
