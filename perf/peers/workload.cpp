// SPDX-License-Identifier: Apache-2.0
#include "workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

namespace weft::peers {
namespace {

constexpr std::array<const char*, kCollectives> kNames = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall"};

// Input element i of a rank: no two neighbouring blocks look alike, so misplaced data shows.
float value(int rank, std::size_t i, std::uint32_t turn) {
  const auto hash = (static_cast<std::uint32_t>(i) * 2654435761u) >> 24;
  return static_cast<float>(hash + static_cast<std::uint32_t>(rank) * 3 + (turn & 15));
}

float sumAt(int ranks, std::size_t i, std::uint32_t turn) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += value(rank, i, turn);
  return sum;
}

float expectedAt(const Call& call, std::size_t i, std::uint32_t turn) {
  const std::size_t mine = static_cast<std::size_t>(call.rank) * call.block;
  const int source = static_cast<int>(i / call.block);
  switch (call.collective) {
    case Collective::AllReduce:
      return sumAt(call.ranks, i, turn);
    case Collective::AllGather:
      return value(source, i % call.block, turn);
    case Collective::ReduceScatter:
      return sumAt(call.ranks, mine + i, turn);
    case Collective::Broadcast:
      return value(0, i, turn);
    case Collective::AllToAll:
      return value(source, mine + i % call.block, turn);
  }
  return std::numeric_limits<float>::quiet_NaN();
}

bool isRoot(const Call& call) { return call.collective == Collective::Broadcast && call.rank == 0; }

}  // namespace

const char* collectiveName(Collective collective) {
  return kNames[static_cast<std::size_t>(collective)];
}

Collective parseCollective(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) {
    throw std::invalid_argument(
        fmt::format("unknown collective '{}'; use one of {}", name, fmt::join(kNames, ", ")));
  }
  return static_cast<Collective>(found - kNames.begin());
}

std::size_t Call::inCount() const { return collective == Collective::AllGather ? block : total; }

std::size_t Call::outCount() const {
  return collective == Collective::ReduceScatter ? block : total;
}

Call shapeCall(Collective collective, std::size_t bytes, int rank, int ranks) {
  Call call;
  call.collective = collective;
  call.rank = rank;
  call.ranks = ranks;
  const std::size_t elements = std::max<std::size_t>(1, bytes / sizeof(float));
  const bool whole = collective == Collective::AllReduce || collective == Collective::Broadcast;
  call.block =
      whole ? elements : std::max<std::size_t>(1, elements / static_cast<std::size_t>(ranks));
  call.total = whole ? elements : call.block * static_cast<std::size_t>(ranks);
  return call;
}

void fillInput(const Call& call, std::uint32_t turn) {
  if (call.collective == Collective::Broadcast && !isRoot(call)) return;
  float* input = call.input();
  for (std::size_t i = 0; i < call.inCount(); ++i) input[i] = value(call.rank, i, turn);
}

void poisonOutput(const Call& call) {
  if (isRoot(call)) return;
  std::fill_n(call.out, call.outCount(), std::numeric_limits<float>::quiet_NaN());
}

std::string checkOutput(const Call& call, std::uint32_t turn) {
  for (std::size_t i = 0; i < call.outCount(); ++i) {
    const float expected = expectedAt(call, i, turn);
    if (call.out[i] == expected) continue;
    return fmt::format("{} of {} elements: rank {} has {} at element {}, expected {}",
                       collectiveName(call.collective), call.total, call.rank, call.out[i], i,
                       expected);
  }
  return {};
}

float readOutput(const Call& call) {
  std::array<float, 16>
      sums{};  // independent sums, so that reading is not bound by latency of adds
  const std::size_t count = call.outCount();
  std::size_t i = 0;
  for (; i + sums.size() <= count; i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += call.out[i + lane];
  }
  for (; i < count; ++i) sums[0] += call.out[i];
  float sum = 0;
  for (const float lane : sums) sum += lane;
  return sum;
}

}  // namespace weft::peers
