// SPDX-License-Identifier: Apache-2.0
#include "workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <vector>

namespace weft::peers {
namespace {

constexpr std::array<const char*, kCollectives> kNames = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast",
    "reduce",     "gather",     "scatter",        "alltoall"};

// Input element i of rank r is pattern(i) + 3 r + turn: no two neighbouring blocks look alike, so
// misplaced data shows.
std::int32_t pattern(std::size_t i) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(i) * 2654435761u) >> 24);
}

std::int32_t offsetOf(int rank, std::uint32_t turn) {
  return rank * 3 + static_cast<std::int32_t>(turn & 15);
}

// Elements out[at] to out[at + count): times * pattern(from), pattern(from + 1), ... + offset.
struct Expected {
  std::size_t at = 0;
  std::size_t count = 0;
  std::size_t from = 0;
  std::int32_t times = 1;
  std::int32_t offset = 0;

  float operator()(std::size_t i) const {
    return static_cast<float>(times * pattern(from + i) + offset);
  }
};

Expected sumOf(const Call& call, std::size_t from, std::uint32_t turn) {
  Expected sum{0, call.outCount(), from, call.ranks, 0};
  for (int rank = 0; rank < call.ranks; ++rank) sum.offset += offsetOf(rank, turn);
  return sum;
}

// A block from each rank, which begins at element `from` of its input.
std::vector<Expected> blocks(const Call& call, std::size_t from, std::uint32_t turn) {
  std::vector<Expected> all;
  for (int rank = 0; rank < call.ranks; ++rank) {
    const std::size_t at = static_cast<std::size_t>(rank) * call.block;
    all.push_back({at, call.block, from, 1, offsetOf(rank, turn)});
  }
  return all;
}

// Of a rank that has an output.
std::vector<Expected> expected(const Call& call, std::uint32_t turn) {
  const std::size_t mine = static_cast<std::size_t>(call.rank) * call.block;
  switch (call.collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
      return {sumOf(call, 0, turn)};
    case Collective::AllGather:
    case Collective::Gather:
      return blocks(call, 0, turn);
    case Collective::ReduceScatter:
      return {sumOf(call, mine, turn)};
    case Collective::Broadcast:
      return {{0, call.total, 0, 1, offsetOf(kRoot, turn)}};
    case Collective::Scatter:
      return {{0, call.block, mine, 1, offsetOf(kRoot, turn)}};
    case Collective::AllToAll:
      return blocks(call, mine, turn);
  }
  return {};
}

// The first element that is not as expected, or expected.count. Without an early way out of the
// inner loop, which is so a loop of vector instructions.
std::size_t firstWrong(const float* out, const Expected& expected) {
  constexpr std::size_t kStep = 4096;
  for (std::size_t begin = 0; begin < expected.count; begin += kStep) {
    const std::size_t end = std::min(begin + kStep, expected.count);
    std::int32_t wrong = 0;
    for (std::size_t i = begin; i < end; ++i) wrong |= out[expected.at + i] != expected(i);
    if (wrong == 0) continue;
    for (std::size_t i = begin; i < end; ++i) {
      if (out[expected.at + i] != expected(i)) return i;
    }
  }
  return expected.count;
}

// Its output is its input.
bool isInPlace(const Call& call) {
  return call.collective == Collective::Broadcast && call.isRoot();
}

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

std::size_t Call::inCount() const {
  switch (collective) {
    case Collective::AllGather:
    case Collective::Gather:
      return block;
    case Collective::Broadcast:
    case Collective::Scatter:
      return isRoot() ? total : 0;
    default:
      return total;
  }
}

std::size_t Call::outCount() const {
  switch (collective) {
    case Collective::ReduceScatter:
    case Collective::Scatter:
      return block;
    case Collective::Reduce:
    case Collective::Gather:
      return isRoot() ? total : 0;
    default:
      return total;
  }
}

Call shapeCall(Collective collective, std::size_t bytes, int rank, int ranks) {
  Call call;
  call.collective = collective;
  call.rank = rank;
  call.ranks = ranks;
  const std::size_t elements = std::max<std::size_t>(1, bytes / sizeof(float));
  const bool whole = collective == Collective::AllReduce || collective == Collective::Broadcast ||
                     collective == Collective::Reduce;
  call.block =
      whole ? elements : std::max<std::size_t>(1, elements / static_cast<std::size_t>(ranks));
  call.total = whole ? elements : call.block * static_cast<std::size_t>(ranks);
  return call;
}

void fillInput(const Call& call, std::uint32_t turn) {
  float* input = call.input();
  const std::size_t count = call.inCount();
  const Expected mine{0, count, 0, 1, offsetOf(call.rank, turn)};
  for (std::size_t i = 0; i < count; ++i) input[i] = mine(i);
}

void poisonOutput(const Call& call) {
  if (isInPlace(call)) return;
  std::fill_n(call.out, call.outCount(), std::numeric_limits<float>::quiet_NaN());
}

std::string checkOutput(const Call& call, std::uint32_t turn) {
  if (call.outCount() == 0) return {};
  for (const Expected& part : expected(call, turn)) {
    const std::size_t i = firstWrong(call.out, part);
    if (i == part.count) continue;
    return fmt::format("{} of {} elements: rank {} has {} at element {}, expected {}",
                       collectiveName(call.collective), call.total, call.rank,
                       call.out[part.at + i], part.at + i, part(i));
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
