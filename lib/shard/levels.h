// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace weft::shard {

// Into how many ranks parameters, gradients and optimizer state are sharded; each divides the next,
// and the last divides the number of ranks, which are replicas beyond it. ZeRO-1 is {1, 1, N},
// ZeRO-2 {1, N, N}, ZeRO-3 {N, N, N}, MiCS {p, p, p}, state sharded inside nodes of k {1, 1, k},
// plain data parallelism {1, 1, 1}.
struct Degrees {
  std::uint32_t param = 1, grad = 1, state = 1;
  friend bool operator==(const Degrees&, const Degrees&) = default;
};
Status checkDegrees(const Degrees& degrees, std::uint32_t ranks);

// The ways that gradients take down to the rank that owns them, and parameters take back up: a
// chain of groups, each of which divides what the one before it has left. Groups of one rank are
// left out (AMSP, arXiv 2311.00257, has the degrees; MiCS, arXiv 2205.00119, the two hops).
//
//   Param    the ranks that share one copy of the parameters      every micro-step
//   Grad     beyond it, those that share one copy of the gradients    every micro-step
//   State    beyond it, those that share one copy of the state        once a step
//   Replica  those that own the same part                             once a step: a sum
//
// Ranks are numbered so that a group of an inner level is a run of consecutive ranks, on one node
// where possible: rank = ((replica * S + state) * G + grad) * P + param.
enum class Level : std::uint8_t { Param, Grad, State, Replica };
inline constexpr std::array kAllLevels = {Level::Param, Level::Grad, Level::State, Level::Replica};
inline constexpr std::size_t kLevels = kAllLevels.size();

// That chain, for so many ranks: a pure function of its arguments.
class Levels {
 public:
  Levels() = default;
  // Of degrees that have been checked.
  Levels(const Degrees& degrees, std::uint32_t ranks);

  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t size(Level level) const { return sizes_[static_cast<std::size_t>(level)]; }
  // How far apart the members of a group are, in ranks.
  std::uint32_t stride(Level level) const { return strides_[static_cast<std::size_t>(level)]; }
  std::uint32_t positionOf(std::uint32_t rank, Level level) const {
    return rank / stride(level) % size(level);
  }
  // Member `position` of the rank's group.
  std::uint32_t rankOf(std::uint32_t rank, Level level, std::uint32_t position) const {
    return rank - positionOf(rank, level) * stride(level) + position * stride(level);
  }

  // What is left to a rank of a bucket of so many elements after the reduction at `level`.
  struct Part {
    std::uint64_t offset = 0, elements = 0;
  };
  Part partOf(std::uint32_t rank, std::uint64_t bucketElements, Level level) const;

 private:
  std::uint32_t ranks_ = 1;
  std::array<std::uint32_t, kLevels> sizes_{1, 1, 1, 1}, strides_{1, 1, 1, 1};
};

}  // namespace weft::shard
