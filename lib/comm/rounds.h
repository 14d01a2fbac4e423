// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "comm/communicator.h"

namespace weft::comm {

// What each rank gives to a round, its length included, where all goes well: after two of them there is
// little left to tell. A split takes three (comm/split.cpp).
inline constexpr std::size_t kShortRecord = 256, kBriefRecord = 16;
inline constexpr std::size_t kSplitRecords[] = {kShortRecord, kShortRecord, kBriefRecord};

// The call of a round of that many bytes a rank.
plan::Call roundOf(std::size_t record, bool fewMessages = false);

// Rounds of an all-gather of blobs of any length among all ranks of a communicator, by its own
// collectives. What is longer than most takes a second one, of all ranks. In turn.
class Rounds {
 public:
  Rounds(Communicator& ranks, Deadline deadline);

  Status exchange(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all);
  // Of records that all ranks have.
  template <class Record>
  Status gather(const Record& mine, std::vector<Record>* all) {
    static_assert(std::is_trivially_copyable_v<Record>);
    std::vector<std::vector<std::byte>> blobs;
    all->resize(ranks_.ranks());  // while the others still wait for this rank
    WEFT_TRY(exchange(std::as_bytes(std::span(&mine, 1)), &blobs));
    for (std::size_t r = 0; r < blobs.size(); ++r)
      std::memcpy(&(*all)[r], blobs[r].data(), std::min(sizeof(Record), blobs[r].size()));
    return {};
  }

 private:
  Status allGather(std::size_t room, std::span<const std::byte> mine,
                   std::vector<std::vector<std::byte>>* all, std::size_t* longest);

  Communicator& ranks_;
  const Deadline deadline_;
  const bool fewMessages_;
  std::size_t count_ = 0;
};

}  // namespace weft::comm
