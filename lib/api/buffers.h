// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "api/check.h"
#include "comm/communicator.h"
#include "plan/call.h"

// What a rank's call of a collective sends from and receives into.
namespace weft::api {

struct Buffers {
  Range send, recv;      // nothing where the rank does not use it
  std::int64_t inPlace;  // see checkBuffers
  bool mayCoincide;
};

[[gnu::always_inline]] inline Status check(const Buffers& buffers) {
  return checkBuffers(buffers.send, buffers.recv, buffers.inPlace, buffers.mayCoincide);
}

[[gnu::always_inline]] inline bool areRight(const Buffers& buffers) {
  return areRight(buffers.send, buffers.recv, buffers.inPlace, buffers.mayCoincide);
}

// Both have `bytes`.
[[gnu::always_inline]] inline Buffers buffersOfVectors(const comm::Communicator& comm,
                                                       schedule::Collective kind, int root,
                                                       const void* in, void* out,
                                                       std::uint64_t bytes) {
  const bool isRoot = static_cast<std::uint32_t>(root) == comm.rank();
  const bool sends = kind != schedule::Collective::Broadcast || isRoot;
  const bool receives = kind != schedule::Collective::Reduce || isRoot;
  return {sends ? Range{in, bytes} : Range(), receives ? Range{out, bytes} : Range(), 0, true};
}

// One holds a block, the other one of each rank. In place, the small buffer is this rank's block of the
// large one.
[[gnu::always_inline]] inline Buffers buffersOfBlocks(const comm::Communicator& comm,
                                                      schedule::Collective kind, int root,
                                                      const void* in, void* out,
                                                      std::uint64_t block) {
  using schedule::Collective;
  const bool isRoot = static_cast<std::uint32_t>(root) == comm.rank();
  const bool gathers = kind == Collective::AllGather || kind == Collective::Gather;
  const std::uint64_t all = block * comm.ranks();
  const bool sends = kind != Collective::Scatter || isRoot;
  const bool receives = kind != Collective::Gather || isRoot;
  const bool takesAll = gathers || kind == Collective::AllToAll;
  const auto own = static_cast<std::int64_t>(block * comm.rank());
  return {sends ? Range{in, gathers ? block : all} : Range(),
          receives ? Range{out, takesAll ? all : block} : Range(), gathers ? own : -own,
          schedule::allowsInPlace(kind)};
}

}  // namespace weft::api
