// SPDX-License-Identifier: Apache-2.0
#include "comm/rounds.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/threads.h"

namespace weft::comm {
namespace {

using Length = std::uint64_t;

// The blobs of a round, whose records have room for so much of each, and how long the longest is.
void unpack(std::span<const std::byte> records, std::size_t ranks,
            std::vector<std::vector<std::byte>>* blobs, std::size_t* longest) {
  const std::size_t record = records.size() / ranks, room = record - sizeof(Length);
  *longest = 0;
  blobs->clear();
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::byte* const from = records.data() + r * record;
    Length length = 0;
    std::memcpy(&length, from, sizeof(length));
    *longest = std::max<std::size_t>(*longest, length);
    blobs->emplace_back(from + sizeof(length),
                        from + sizeof(length) + std::min<std::size_t>(room, length));
  }
}

}  // namespace

plan::Call roundOf(std::size_t record, bool fewMessages) {
  plan::Call call;
  call.collective = schedule::Collective::AllGather;
  call.type = reduce::DType::U8;
  call.count = record;
  if (fewMessages) call.algorithm = "circulant";
  return call;
}

// Ranks of one host that meet over a wire may be more than it has cores, which all messages take time of:
// so few of them, though one after the other.
Rounds::Rounds(Communicator& ranks, Deadline deadline)
    : ranks_(ranks), deadline_(deadline), fewMessages_([&] {
        const Core::Parts& parts = ranks.core()->parts;
        return parts.target.ring == 0 && parts.localRanks == parts.ranks && parts.ranks > 2;
      }()) {}

// Blobs that are longer than `room` come without their end.
Status Rounds::allGather(std::size_t room, std::span<const std::byte> mine,
                         std::vector<std::vector<std::byte>>* all, std::size_t* longest) {
  const std::size_t record = sizeof(Length) + room;
  std::vector<std::byte> sent(record), received(record * ranks_.ranks());
  const Length length = mine.size();
  std::memcpy(sent.data(), &length, sizeof(length));
  std::copy_n(mine.begin(), std::min(room, mine.size()), sent.begin() + sizeof(length));
  WEFT_TRY(ranks_.run(roundOf(record, fewMessages_), sent.data(), received.data(), nullptr,
                      deadline_.pollTimeoutMs(), "split"));
  return tryingTwice([&]() -> Status {  // the others have gone on
    unpack(received, ranks_.ranks(), all, longest);
    return {};
  });
}

// Who has no memory for a round would be a collective behind the others.
Status Rounds::exchange(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) {
  const bool isPlanned = count_ < std::size(kSplitRecords);
  const std::size_t room = (isPlanned ? kSplitRecords[count_++] : kBriefRecord) - sizeof(Length);
  std::size_t longest = 0;
  try {
    WEFT_TRY(allGather(room, mine, all, &longest));
    return longest <= room ? Status() : allGather(longest, mine, all, &longest);
  } catch (...) {
    return ranks_.fail(statusOfException());
  }
}

}  // namespace weft::comm
