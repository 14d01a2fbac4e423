// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"

namespace weft::shard {

// Into how many ranks parameters, gradients and optimizer state are sharded; each divides the next,
// and the last divides the number of ranks, which are replicas beyond it. ZeRO-1 is {1, 1, N},
// ZeRO-2 {1, N, N}, ZeRO-3 {N, N, N}, MiCS {p, p, p}, state sharded inside nodes of k {1, 1, k},
// plain data parallelism {1, 1, 1}.
struct Degrees {
  std::uint32_t param = 1, grad = 1, state = 1;
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

class Mesh {
 public:
  // Collective over `parent`, in turn with its other calls. The mesh's communicators are its own.
  static Status make(comm::Communicator& parent, const Degrees& degrees, Mesh* out);

  const Degrees& degrees() const { return degrees_; }
  std::uint32_t rank() const { return rank_; }
  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t size(Level level) const { return sizes_[static_cast<std::size_t>(level)]; }
  std::uint32_t position(Level level) const { return positions_[static_cast<std::size_t>(level)]; }
  // The rank in the whole mesh of member `position` of this rank's group.
  std::uint32_t rankOf(Level level, std::uint32_t position) const;

  // Null for groups of one. Used by one thread at a time, like world().
  comm::Communicator* group(Level level) const {
    return groups_[static_cast<std::size_t>(level)].get();
  }
  comm::Communicator* world() const { return world_.get(); }
  // The Param group once more, for gathers that run beside the reductions; null for one.
  comm::Communicator* gatherers() const { return gatherers_.get(); }
  // The rank's threads: those of its communicators.
  const engine::Crew& crew() const { return crew_; }
  void abort();
  // Ends what any rank does in any group: whoever is in another one than the cause hears of it,
  // too.
  void fail(const Status& cause);
  // The payload that all communicators of the mesh have moved.
  std::uint64_t movedBytes() const;

  // What is left to this rank of a bucket of so many elements after the reduction at `level`.
  struct Part {
    std::uint64_t offset = 0, elements = 0;
  };
  Part part(std::uint64_t bucketElements, Level level) const;

 private:
  Status split(comm::Communicator& parent);
  std::vector<comm::Communicator*> communicators() const;

  Degrees degrees_;
  std::uint32_t rank_ = 0, ranks_ = 1;
  std::array<std::uint32_t, kLevels> sizes_{1, 1, 1, 1};
  std::array<std::uint32_t, kLevels> positions_{};
  std::array<std::uint32_t, kLevels> strides_{1, 1, 1, 1};  // in ranks
  std::array<std::shared_ptr<comm::Communicator>, kLevels> groups_;
  std::shared_ptr<comm::Communicator> world_, gatherers_;
  engine::Crew crew_;
};

}  // namespace weft::shard
