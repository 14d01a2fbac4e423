// SPDX-License-Identifier: Apache-2.0
#pragma once

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

  // False: no peer of this weft sends such a notice.
  bool take(Notice notice) {
    if (notice.value >= mailbox_.cells()) return false;
    std::uint8_t& seen = seen_[notice.value];
    if (++seen < notice.count) return true;
    seen = 0;
    raise(notice.value);
    return true;
  }

 private:
  void raise(std::uint32_t index) {
    const Mailbox::Record& record = mailbox_.arrived(index);
    Cell& cell = cells_[index];
    cell.stamp = record.stamp;
    std::copy(std::begin(record.inlined), std::end(record.inlined), cell.inlined);
    cell.word.store(record.word, std::memory_order_release);
  }

  Mailbox mailbox_;
  Cell* cells_;
  std::vector<std::uint8_t> seen_;  // by cell: notices of the put that is arriving
};

}  // namespace weft
