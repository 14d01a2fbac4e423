// SPDX-License-Identifier: Apache-2.0
#include "tools/test/blame.h"

#include <fmt/format.h>

#include <set>

namespace weft::test {
namespace {

using perf::RankInfo;
using perf::WrongData;

// The rank of the world that the data came from; kSeveral stays.
int sourceOf(const WrongData& data, std::span<const WrongData> members) {
  for (const WrongData& member : members) {
    if (member.group == data.group && member.rankInGroup == data.source) return member.rank;
  }
  return WrongData::kSeveral;
}

std::string describe(int rank, std::span<const RankInfo> ranks) {
  return fmt::format("rank {} on {}", rank, ranks[static_cast<std::size_t>(rank)].host);
}

}  // namespace

std::string culpritOf(std::span<const WrongData> all, std::span<const RankInfo> ranks) {
  std::set<int> receivers, sources;
  for (const WrongData& data : all) {
    if (data.elements == 0 || data.source == WrongData::kNowhere) continue;
    receivers.insert(data.rank);
    sources.insert(sourceOf(data, all));
  }
  const bool oneSource = sources.size() == 1 && *sources.begin() != WrongData::kSeveral;
  if (oneSource && receivers.size() == 1 && *sources.begin() != *receivers.begin()) {
    return fmt::format("the link from {} to {}", describe(*sources.begin(), ranks),
                       describe(*receivers.begin(), ranks));
  }
  if (oneSource) return describe(*sources.begin(), ranks) + ", whose data all of it was";
  if (receivers.size() == 1)
    return describe(*receivers.begin(), ranks) + ", which received all of it";
  return {};
}

}  // namespace weft::test
