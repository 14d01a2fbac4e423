// SPDX-License-Identifier: Apache-2.0
// What is measured: one fp32 collective of one size, its input, and the only right answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::peers {

enum class Collective : std::uint32_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  Broadcast,
  Reduce,
  Gather,
  Scatter,
  AllToAll
};
inline constexpr int kCollectives = 8;
inline constexpr int kRoot = 0;  // of all rooted calls

const char* collectiveName(Collective collective);  // as weft-perf spells it: "all_reduce"
// Throws std::invalid_argument that lists the names.
Collective parseCollective(std::string_view name);

// One call, as every library sees it. Sizes are nccl-tests': all-reduce, broadcast and reduce name
// the buffer, all-gather and gather the receive buffer, the others the send buffer. A block is at
// least one element, so tiny sizes round up. Sums are sums. Broadcast runs in place.
struct Call {
  Collective collective{};
  int rank = 0;
  int ranks = 1;
  std::size_t total = 0;  // elements of the larger buffer
  std::size_t block = 0;  // elements of one rank's share
  float* in = nullptr;
  float* out = nullptr;  // broadcast: the one buffer; in is unused

  bool isRoot() const { return rank == kRoot; }
  std::size_t inCount() const;   // 0: this rank has no input,
  std::size_t outCount() const;  // or no output
  // The buffer that holds this rank's input.
  float* input() const { return collective == Collective::Broadcast ? out : in; }
};

// The shape of a call of `bytes`; buffers are left null.
Call shapeCall(Collective collective, std::size_t bytes, int rank, int ranks);

// Writes this rank's input of iteration `turn`; values are small integers, so every sum is exact.
void fillInput(const Call& call, std::uint32_t turn);
// Overwrites the output with NaN, where that is not also the input.
void poisonOutput(const Call& call);
// "" if the output is what fillInput(turn) on every rank asks for, else the first wrong element.
std::string checkOutput(const Call& call, std::uint32_t turn);
// Reads every element of the output, as an application would.
float readOutput(const Call& call);

}  // namespace weft::peers
