// SPDX-License-Identifier: Apache-2.0
// The collectives as data: one row each says how large its buffers are, what it must deliver, how
// to call it and how its bandwidth counts. Sizes are nccl-tests': of the larger buffer.
#pragma once

#include <weft/weft.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "perf/weft-perf/types.h"

namespace weft::perf {

struct Collective;

// A rank that sends to another one.
struct Pair {
  int source;
  int target;
};

// One collective of one size, as one rank sees it. Counts and positions are in elements.
struct Problem {
  const Collective* collective;
  TypeInfo type;
  OpInfo op;
  int root;  // -1 without one
  int rank;
  int ranks;

  std::size_t total = 0;      // of the larger buffer: the size column
  std::size_t count = 0;      // the count argument; for the v-forms the total
  std::size_t sendCount = 0;  // of this rank's buffers
  std::size_t recvCount = 0;
  std::size_t sendAt = 0;  // in place, both lie in one buffer, at these positions
  std::size_t recvAt = 0;
  std::vector<std::size_t> counts = {};  // of the v-forms, packed in rank order
  int to = -1;                           // of sendrecv, -1 = nobody
  int from = -1;

  bool isRoot() const { return rank == root; }
  std::size_t bytes() const { return total * type.bytes; }
};

// A run of the receive buffer and where its content comes from: elements [from, from + count) of
// the input of rank `source`, or of the reduction over all ranks. What no block covers stays
// untouched.
struct Block {
  static constexpr int kReduced = -1;
  std::size_t at;
  std::size_t count;
  int source;
  std::size_t from;
};

struct Call {
  const void* send;
  void* recv;
  weftRedOp_t op;
  weftComm_t comm;
  weftStream_t stream;
  const weftOpts_t* options;
};

struct Collective {
  const char* name;  // nccl-tests' name
  bool reduces;
  bool rooted;
  bool inPlace;
  bool replicates;  // all ranks receive the same bits
  bool plans;       // runs as a plan, which can be explained; else by pairs of ranks
  void (*shape)(Problem& problem, std::size_t elements, std::size_t multiple);
  std::vector<Block> (*expected)(const Problem& problem);
  double (*busFactor)(int ranks);  // busbw / algbw
  weftResult_t (*call)(const Problem& problem, const Call& call);
};

std::span<const Collective> allCollectives();
// "all_reduce" or "all_reduce_perf". Throws std::invalid_argument that lists the names.
const Collective& parseCollective(const std::string& name);

// The problem of `bytes` bytes. `roundBlocks`: as in nccl-tests, the blocks of all_gather and
// reduce_scatter are rounded down to 16 bytes.
Problem makeProblem(const Collective& collective, const TypeInfo& type, const OpInfo& op, int root,
                    int rank, int ranks, std::size_t bytes, bool roundBlocks);

// Makes a sendrecv go by `pairs` instead of around the ring.
void routeBy(const std::vector<Pair>& pairs, Problem& problem);

}  // namespace weft::perf
