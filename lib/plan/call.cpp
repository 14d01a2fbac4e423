// SPDX-License-Identifier: Apache-2.0
#include "plan/call.h"

#include <iterator>

#include "base/hash.h"
#include "base/text.h"

namespace weft::plan {

constexpr std::uint64_t kUnevenBit = 1u << 24;

std::string_view collectiveName(schedule::Collective collective, bool uneven) {
  constexpr std::string_view kNames[] = {"all_reduce", "all_gather", "reduce_scatter",
                                         "broadcast",  "reduce",     "gather",
                                         "scatter",    "alltoall",   "barrier"};
  if (uneven && collective == schedule::Collective::AllGather) return "all_gather_v";
  if (uneven && collective == schedule::Collective::ReduceScatter) return "reduce_scatter_v";
  if (uneven && collective == schedule::Collective::Gather) return "gather_v";
  if (uneven && collective == schedule::Collective::Scatter) return "scatter_v";
  if (uneven && collective == schedule::Collective::AllToAll) return "alltoallv";
  const auto number = static_cast<std::size_t>(collective);
  return number < std::size(kNames) ? kNames[number] : "unknown collective";
}

std::string describe(schedule::Collective collective, std::uint64_t count, reduce::DType type,
                     reduce::RedOp op, int root, bool uneven) {
  if (collective == schedule::Collective::Barrier) return "barrier()";
  std::string line = text(collectiveName(collective, uneven), "(");
  if (!uneven || sharesCounts(collective)) line += text("count=", count, ", ");
  line += reduce::name(type);
  if (schedule::isReduction(collective)) line += text(", ", reduce::name(op));
  if (schedule::isRooted(collective)) line += text(", root=", root);
  return line + ")";
}

std::string describe(const transport::CallRecord& record) {
  const std::uint64_t what = record.what.load(std::memory_order_acquire);
  return describe(
      static_cast<schedule::Collective>(what & 0xff), record.count.load(std::memory_order_acquire),
      static_cast<reduce::DType>(what >> 8 & 0xff), static_cast<reduce::RedOp>(what >> 16 & 0xff),
      static_cast<int>(what >> 32), (what & kUnevenBit) != 0);
}

bool isStep(const Call& call) {
  return call.collective == schedule::Collective::AllReduce && call.op == reduce::RedOp::Epilogue;
}

std::uint64_t packWhat(const Call& call) {
  return static_cast<std::uint64_t>(call.collective) | static_cast<std::uint64_t>(call.type) << 8 |
         static_cast<std::uint64_t>(call.op) << 16 |
         (call.counts.empty() && !call.exchanges ? 0 : kUnevenBit) |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(call.root)) << 32;
}

std::uint64_t fingerprintOf(const Call& call, std::uint32_t ranks, std::string_view algorithm) {
  Hash hash;
  hash.add(packWhat(call)).add(call.count).add(ranks).add(call.reproducible).add(algorithm);
  for (const std::size_t n : call.counts) hash.add(n);
  for (std::size_t r = 0; r < call.displs.size(); ++r)
    hash.add(call.counts[r] == 0 ? 0 : call.displs[r]);  // an empty block lies anywhere
  return hash.value();
}

}  // namespace weft::plan
