// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/peer_buffers.h"
#include "plan/plan.h"
#include "plan/sum_kernel.h"

namespace weft {

// Runs the ops of a plan that touch bytes: copies, folds, and stores into peers' buffers. No
// allocation once warm. One thread at a time.
class Compute {
 public:
  // `base` has the addresses of In, Out, Arena and Cells, by Base.
  struct Frame {
    const Plan& plan;
    std::byte* const* base;
    const void* scalar;   // pre-multiply
    SumKernel* kernel;    // of a plan that calls one
    std::uint64_t shift;  // where the segment starts in a block, in bytes
  };

  explicit Compute(PeerBuffers& peers, std::uint32_t ranks);

  // Runs `op` on its first `bytes` bytes. False: a kernel copy failed, the transport's lastError()
  // says why.
  bool run(const Frame& frame, const BoundOp& op, std::uint64_t bytes);

 private:
  std::byte* at(const Frame& frame, const Place& place) const {
    return isPeers(place) ? peers_.address(place)
                          : frame.base[static_cast<unsigned>(place.base)] + place.offset;
  }
  static bool isPeers(const Place& p) { return p.base == Base::PeerIn || p.base == Base::PeerOut; }

  void fold(const Frame& frame, const BoundOp& op, std::uint64_t bytes);
  void copy(const Frame& frame, const BoundOp& op, std::uint64_t bytes);
  void callKernel(const Frame& frame, const BoundOp& op, std::uint64_t bytes);
  void findTargets(const Frame& frame, const BoundOp& op);
  void spread(const Frame& frame, const BoundOp& op, const std::byte* src, std::uint64_t bytes);

  bool runInTiles(const Frame& frame, const BoundOp& op, std::uint64_t bytes);
  const std::byte* load(const Frame& frame, const Place& place, std::uint64_t from,
                        std::size_t bytes, std::uint32_t slot);
  bool store(const Frame& frame, const Place& place, std::uint64_t from, const std::byte* src,
             std::size_t bytes);
  const std::byte* makeTile(const Frame& frame, const BoundOp& op, std::uint64_t from,
                            std::size_t bytes);

  PeerBuffers& peers_;
  std::vector<const void*> sources_;  // of a fold
  std::vector<void*> targets_;        // of the op
  std::vector<std::byte> tile_;       // of a kernel's results
};

}  // namespace weft
