// SPDX-License-Identifier: Apache-2.0
#include "shard/split_parameters.h"

#include <algorithm>
#include <string_view>

#include "base/hash.h"
#include "comm/agree.h"

namespace weft::shard {
namespace {

std::uint64_t hashOf(const ParameterSpec& p) {
  return Hash().add(std::string_view(p.name)).value();
}

// Of all parts, each once.
Status gatherNames(comm::Communicator& parts, std::vector<std::uint64_t> mine, int timeoutMs,
                   std::vector<std::uint64_t>* all) {
  std::vector<std::uint64_t> counts;
  WEFT_TRY(comm::gatherRecords(&parts, std::uint64_t{mine.size()}, &counts, timeoutMs, "shard"));
  const std::uint64_t most = *std::ranges::max_element(counts);
  if (most == 0) return {};
  mine.resize(most);
  std::vector<std::uint64_t> padded(most * counts.size());
  WEFT_TRY(
      parts.allGather(mine.data(), padded.data(), most, reduce::DType::U64, timeoutMs, "shard"));
  for (std::size_t part = 0; part < counts.size(); ++part)
    all->insert(all->end(), padded.begin() + static_cast<std::ptrdiff_t>(part * most),
                padded.begin() + static_cast<std::ptrdiff_t>(part * most + counts[part]));
  std::ranges::sort(*all);
  all->erase(std::ranges::unique(*all).begin(), all->end());
  return {};
}

}  // namespace

Status SplitParameters::find(comm::Communicator& parts, const Layout& layout, int timeoutMs,
                             SplitParameters* out) {
  const auto parameters = layout.parameters();
  std::vector<std::uint64_t> mine, all;
  for (const ParameterSpec& p : parameters)
    if (p.split && p.isTrained()) mine.push_back(hashOf(p));
  WEFT_TRY(gatherNames(parts, std::move(mine), timeoutMs, &all));
  SplitParameters found;
  found.count_ = all.size();
  for (std::uint32_t p = 0; p < parameters.size(); ++p) {
    if (!parameters[p].split || !parameters[p].isTrained()) continue;
    const auto number = std::ranges::lower_bound(all, hashOf(parameters[p])) - all.begin();
    found.own_.push_back({p, static_cast<std::size_t>(number), !parameters[p].copy});
  }
  *out = std::move(found);
  return {};
}

}  // namespace weft::shard
