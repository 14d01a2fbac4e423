// SPDX-License-Identifier: Apache-2.0
#include "plan/call.h"

#include "base/hash.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::uint64_t kUnevenBit = 1u << 24;

}  // namespace

std::string_view collectiveName(Collective collective, bool uneven) {
  switch (collective) {
    case Collective::AllReduce:
      return "all_reduce";
    case Collective::AllGather:
      return uneven ? "all_gather_v" : "all_gather";
    case Collective::ReduceScatter:
      return uneven ? "reduce_scatter_v" : "reduce_scatter";
    case Collective::Broadcast:
      return "broadcast";
    case Collective::Reduce:
      return "reduce";
    case Collective::Gather:
      return "gather";
    case Collective::Scatter:
      return "scatter";
    case Collective::AllToAll:
      return "alltoall";
    case Collective::Barrier:
      return "barrier";
  }
  return "unknown collective";
}

std::string describe(Collective collective, std::uint64_t count, DType type, RedOp op, int root,
                     bool uneven) {
  if (collective == Collective::Barrier) return "barrier()";
  std::string line = text(collectiveName(collective, uneven), "(count=", count, ", ", name(type));
  if (isReduction(collective)) line += text(", ", name(op));
  if (isRooted(collective)) line += text(", root=", root);
  return line + ")";
}

std::string describe(const CallRecord& record) {
  const std::uint64_t what = record.what.load(std::memory_order_acquire);
  return describe(static_cast<Collective>(what & 0xff),
                  record.count.load(std::memory_order_acquire),
                  static_cast<DType>(what >> 8 & 0xff), static_cast<RedOp>(what >> 16 & 0xff),
                  static_cast<int>(what >> 32), (what & kUnevenBit) != 0);
}

std::uint64_t packWhat(const Call& call) {
  return static_cast<std::uint64_t>(call.collective) | static_cast<std::uint64_t>(call.type) << 8 |
         static_cast<std::uint64_t>(call.op) << 16 | (call.counts.empty() ? 0 : kUnevenBit) |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(call.root)) << 32;
}

std::uint64_t fingerprintOf(const Call& call, std::uint32_t ranks, std::string_view algorithm) {
  Hash hash;
  hash.add(packWhat(call)).add(call.count).add(ranks).add(call.reproducible).add(algorithm);
  for (const std::size_t n : call.counts) hash.add(n);
  for (const std::size_t d : call.displs) hash.add(d);
  return hash.value();
}

}  // namespace weft
