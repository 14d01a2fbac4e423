// SPDX-License-Identifier: Apache-2.0
#include "comm/rounds.h"

#include <algorithm>
#include <cstdint>

#include "base/threads.h"

namespace weft::comm {
namespace {

constexpr std::size_t kShort = 248;  // with its length 256 bytes: what is told where all goes well
using Length = std::uint64_t;

}  // namespace

// Blobs that are longer than `room` come without their end.
Status Rounds::allGather(std::size_t room, std::span<const std::byte> mine,
                         std::vector<std::vector<std::byte>>* all, std::size_t* longest) {
  const std::size_t record = sizeof(Length) + room;
  std::vector<std::byte> sent(record), received(record * ranks_.ranks());
  const Length length = mine.size();
  std::memcpy(sent.data(), &length, sizeof(length));
  std::copy_n(mine.begin(), std::min(room, mine.size()), sent.begin() + sizeof(length));
  WEFT_TRY(ranks_.allGather(sent.data(), received.data(), record, reduce::DType::U8,
                            deadline_.pollTimeoutMs(), "split"));
  *longest = 0;
  all->clear();
  for (std::size_t r = 0; r < ranks_.ranks(); ++r) {
    const std::byte* const from = received.data() + r * record;
    Length theirs = 0;
    std::memcpy(&theirs, from, sizeof(theirs));
    *longest = std::max<std::size_t>(*longest, theirs);
    all->emplace_back(from + sizeof(theirs),
                      from + sizeof(theirs) + std::min<std::size_t>(room, theirs));
  }
  return {};
}

// Who has no memory for a round would be a collective behind the others.
Status Rounds::exchange(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) {
  ++count_;
  std::size_t longest = 0;
  try {
    WEFT_TRY(allGather(kShort, mine, all, &longest));
    return longest <= kShort ? Status() : allGather(longest, mine, all, &longest);
  } catch (...) {
    return ranks_.fail(statusOfException());
  }
}

Status Rounds::upTo(int rounds) {
  std::vector<std::vector<std::byte>> others;
  while (count_ < rounds) WEFT_TRY(exchange({}, &others));
  return {};
}

}  // namespace weft::comm
