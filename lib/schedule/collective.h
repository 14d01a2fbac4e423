// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// What each collective means: which rank has which buffer, and which logical chunk its slots hold.
//
//   collective     In, on rank r                    Out, on rank r                  required Out
//   AllReduce      chunk c of the vector            chunk c of the vector           sum over ranks
//   Broadcast      root only: chunk c               chunk c                         root's chunk
//   Reduce         chunk c                          root only: chunk c              sum over ranks
//   AllGather      slot 0: block r                  slot s: block s                 rank s's block
//   Gather         slot 0: block r                  root only: slot s: block s      rank s's block
//   ReduceScatter  slot c: block c                  slot 0: block r                 sum over ranks
//   Scatter        root only: slot c: block c       slot 0: block r                 root's block r
//   AllToAll       slot d: the block for rank d     slot s: the block from rank s   (all one length)
//   Barrier        none                             none
//
// The logical chunk of a slot is the chunk or block number in this table, so a sender and a
// receiver agree on its length. A schedule may deal blocks in `parts`: then each block of the table is so
// many slots, and so many logical chunks, one after the other. In all-to-all the number differs at the two ends, which is why its
// blocks must have equal lengths. Buffers "root only" may not exist elsewhere and no schedule
// touches them there.
namespace weft::schedule {

enum class Collective : uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  Broadcast,
  Reduce,
  Gather,
  Scatter,
  AllToAll,
  Barrier,
};

constexpr const char* nameOf(Collective c) {
  constexpr const char* kNames[] = {"all-reduce", "all-gather", "reduce-scatter",
                                    "broadcast",  "reduce",     "gather",
                                    "scatter",    "all-to-all", "barrier"};
  return kNames[static_cast<unsigned>(c)];
}

constexpr bool isRooted(Collective c) {
  return c == Collective::Broadcast || c == Collective::Reduce || c == Collective::Gather ||
         c == Collective::Scatter;
}

// Does it add: its result is Finished, and its inputs may be Scaled?
constexpr bool isReduction(Collective c) {
  return c == Collective::AllReduce || c == Collective::ReduceScatter || c == Collective::Reduce;
}

constexpr bool hasIn(Collective c, uint32_t root, uint32_t rank) {
  if (c == Collective::Barrier) return false;
  return (c != Collective::Broadcast && c != Collective::Scatter) || rank == root;
}

constexpr bool hasOut(Collective c, uint32_t root, uint32_t rank) {
  if (c == Collective::Barrier) return false;
  return (c != Collective::Reduce && c != Collective::Gather) || rank == root;
}

// Is all of In (Out) the rank's own block, in slot 0?
constexpr bool hasOneIn(Collective c) {
  return c == Collective::AllGather || c == Collective::Gather;
}
constexpr bool hasOneOut(Collective c) {
  return c == Collective::ReduceScatter || c == Collective::Scatter;
}

// The logical chunk in slot `index` of In (Out) on `rank`, with so many parts of a block.
constexpr uint32_t logicalIn(Collective c, uint32_t rank, uint32_t index, uint32_t parts = 1) {
  return hasOneIn(c) ? rank * parts + index : index;
}
constexpr uint32_t logicalOut(Collective c, uint32_t rank, uint32_t index, uint32_t parts = 1) {
  return hasOneOut(c) ? rank * parts + index : index;
}

// May In and Out be the same memory? Then In slot i of `rank` is Out slot inPlaceOut(...), or
// kNoAlias where that In slot has no Out slot. Vectors coincide; a block coincides with its place
// in the larger buffer (AllGather, Gather: In(0) with Out(r); ReduceScatter, Scatter: In(r) with
// Out(0)).
inline constexpr uint32_t kNoAlias = ~0u;

constexpr bool allowsInPlace(Collective c) {
  return c != Collective::AllToAll && c != Collective::Barrier;
}

constexpr uint32_t inPlaceOut(Collective c, uint32_t rank, uint32_t index, uint32_t parts = 1) {
  if (hasOneIn(c)) return rank * parts + index;
  if (hasOneOut(c)) return index / parts == rank ? index % parts : kNoAlias;
  return index;
}

}  // namespace weft::schedule
