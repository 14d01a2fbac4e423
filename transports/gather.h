// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "transports/transport.h"

namespace weft::transport {

// All-gather of `record` and of each rank's status so far. If any rank has failed, all ranks get
// the text of the lowest such rank, so that nobody waits for it any longer; what a rank says of
// itself goes before what others say of it (RemoteError). Where the exchange itself fails, each
// rank keeps what it says of itself, else gets the error of the exchange: who is seen to have ended
// has often only heard of a death, and the exchange knows whose.
Status gatherBytes(const TransportSetup&, const Status& mine, std::span<const std::byte> record,
                   std::vector<std::vector<std::byte>>* all);

// Records should have no gaps: what lay there before would travel.
template <class Record>
Status gather(const TransportSetup& setup, const Status& mine, const Record& record,
              std::vector<Record>* all) {
  static_assert(std::is_trivially_copyable_v<Record>);
  std::vector<std::vector<std::byte>> blobs;
  WEFT_TRY(gatherBytes(setup, mine, std::as_bytes(std::span(&record, 1)), &blobs));
  all->resize(blobs.size());
  for (std::size_t i = 0; i < blobs.size(); ++i)
    std::memcpy(&(*all)[i], blobs[i].data(), sizeof(Record));
  return {};
}

inline constexpr std::size_t kMostListBytes = 1 << 20;
inline constexpr std::size_t kListPartBytes = 32 << 10;  // what every exchange carries at once

// Any number of records of each rank: how many, then all of them, padded to the longest list, in as
// many parts as they need.
template <class Record>
Status gatherLists(const TransportSetup& setup, const Status& mine, std::vector<Record> records,
                   std::vector<std::vector<Record>>* all) {
  static_assert(std::is_trivially_copyable_v<Record>);
  std::vector<std::uint32_t> counts;
  WEFT_TRY(gather(setup, mine, static_cast<std::uint32_t>(records.size()), &counts));
  const std::size_t longest = *std::ranges::max_element(counts);
  if (longest > kMostListBytes / sizeof(Record))
    return Status::error(Code::Mismatch, "a rank announces ", longest,
                         " records of set-up data; fix: the same libweft on all ranks");
  records.resize(longest);
  all->assign(counts.size(), {});
  constexpr std::size_t kPart = std::max<std::size_t>(kListPartBytes / sizeof(Record), 1);
  for (std::size_t from = 0; from < longest; from += kPart) {
    const auto part = std::span(records).subspan(from, std::min(kPart, longest - from));
    std::vector<std::vector<std::byte>> blobs;
    WEFT_TRY(gatherBytes(setup, {}, std::as_bytes(part), &blobs));
    for (std::size_t i = 0; i < blobs.size(); ++i) {
      if (counts[i] <= from) continue;
      std::vector<Record>& theirs = (*all)[i];
      const std::size_t count = std::min<std::size_t>(counts[i] - from, part.size());
      theirs.resize(from + count);
      std::memcpy(theirs.data() + from, blobs[i].data(), count * sizeof(Record));
    }
  }
  return {};
}

// The same for a status alone.
inline Status agree(const TransportSetup& setup, const Status& mine) {
  std::vector<std::vector<std::byte>> nothing;
  return gatherBytes(setup, mine, {}, &nothing);
}

// What a record's field of characters says: its sender may have left no end of it.
template <std::size_t N>
std::string fieldText(const char (&field)[N]) {
  return {field, ::strnlen(field, N)};
}

}  // namespace weft::transport
