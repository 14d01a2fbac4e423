// SPDX-License-Identifier: Apache-2.0
#include "plan/extents.h"

#include <algorithm>

namespace weft::plan {
namespace {

using schedule::Collective;

// A block of each rank, wherever they lie.
std::uint64_t allBlocks(const Call& call, std::uint32_t ranks) {
  if (call.counts.empty()) return call.count * ranks;
  std::uint64_t packed = 0, end = 0;
  for (std::size_t r = 0; r < call.counts.size(); ++r) {
    packed += call.counts[r];
    if (!call.displs.empty() && call.counts[r] != 0)
      end = std::max<std::uint64_t>(end, call.displs[r] + call.counts[r]);
  }
  return call.displs.empty() ? packed : end;
}

}  // namespace

Extents extentsOf(const Call& call, std::uint32_t rank, std::uint32_t ranks) {
  const std::uint64_t bytes = reduce::sizeOf(call.type);
  const std::uint64_t one = (call.counts.empty() ? call.count : call.counts[rank]) * bytes;
  const std::uint64_t all = allBlocks(call, ranks) * bytes;
  const bool hasGaps = !call.displs.empty();
  switch (call.collective) {
    case Collective::AllReduce:
      return isStep(call) ? Extents{all, all, hasGaps} : Extents{one, one, hasGaps};
    case Collective::Reduce:
    case Collective::Broadcast:
      return {one, one, hasGaps};
    case Collective::AllGather:
    case Collective::Gather:
      return {one, all, hasGaps};
    case Collective::ReduceScatter:
    case Collective::Scatter:
      return {all, one, hasGaps};
    case Collective::AllToAll:
      return {all, all, hasGaps};
    default:
      return {};
  }
}

}  // namespace weft::plan
