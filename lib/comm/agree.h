// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"

namespace weft::comm {

// What the library's own parts tell each other among the ranks of a communicator, which is null for
// one rank alone. Collective, in turn; the label names the call in errors.

// Every rank's record, in rank order.
template <class Record>
Status gatherRecords(Communicator* ranks, const Record& mine, std::vector<Record>* all,
                     int timeoutMs, const char* label) {
  static_assert(std::is_trivially_copyable_v<Record>);
  all->assign(ranks == nullptr ? 1 : ranks->ranks(), mine);
  if (ranks == nullptr) return {};
  return ranks->allGather(&mine, all->data(), sizeof(Record), reduce::DType::U8, timeoutMs, label);
}

// What root has, for all; `bytes` is equal on all ranks.
Status shareFrom(Communicator* ranks, std::uint32_t root, void* data, std::size_t bytes,
                 int timeoutMs, const char* label);

// The same on all ranks: the error of the lowest rank that has one.
Status agreeOn(Communicator* ranks, const Status& mine, int timeoutMs, const char* label);

}  // namespace weft::comm
