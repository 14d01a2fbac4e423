// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "forest/forest.h"
#include "schedule/ir.h"

// Every generator: (ranks, root, ...) -> Schedule. registry.h lists them for choosing and proving.
// n is the number of ranks, S the bytes of the whole vector (all blocks), C the number of chunks.
// Tmp sizes are per invocation; "rank order" means that sums have the bits of ((x0 + x1) + x2) +
// ...
namespace weft::schedule {

// mesh.cpp: every block goes straight to its owner, in one step. Rank order. Tmp S
// (reduce-scatter).
Schedule meshReduceScatter(uint32_t n);
Schedule meshAllGather(uint32_t n);
Schedule meshAllReduce(uint32_t n);              // the two above; 2 steps, bandwidth-optimal
Schedule meshReduce(uint32_t n, uint32_t root);  // reduce-scatter, then gather

// one_shot.cpp: everybody sends the whole vector; one step, for small messages. Rank order, so the
// same bits as the mesh. Tmp n*S. In place, Out is overwritten while puts may still read it: the
// binder has the engine wait for them.
Schedule oneShotAllReduce(uint32_t n);
Schedule oneShotReduce(uint32_t n, uint32_t root);

// ring.cpp: n-1 steps to the next neighbour. Tmp S (reduce-scatter).
Schedule ringReduceScatter(uint32_t n);
Schedule ringAllGather(uint32_t n);
Schedule ringAllReduce(uint32_t n);

// circulant.cpp: ceil(log2 n) rounds for any n, n-1 blocks sent and received. Tmp S
// (reduce-scatter).
Schedule circulantReduceScatter(uint32_t n);
Schedule circulantAllGather(uint32_t n);
Schedule circulantAllReduce(uint32_t n);

// recursive_doubling.cpp: whole vectors in log2 n rounds, and two more where n is no power of two.
// C = 1, or n as rails between nodes. Tmp 2 S * log2 n.
Schedule doublingAllReduce(uint32_t n);
Schedule doublingRail(uint32_t nodes);

// direct.cpp: every block goes straight from its source to its destination. No Tmp.
Schedule directBroadcast(uint32_t n, uint32_t root);
Schedule directGather(uint32_t n, uint32_t root);
Schedule directScatter(uint32_t n, uint32_t root);
Schedule directAllToAll(uint32_t n);
Schedule directBarrier(uint32_t n);  // one round of n - 1 signals a rank

// shared.cpp: for ranks that reach each other's In and Out by loads and stores. Each reads what it
// needs where it lies, and stores its part of the result to everyone: S bytes read and S written a
// rank, the least there is. Opened (transforms.h). Rank order. No Tmp, but for one slot of a reduce,
// which lies nowhere: what is made in it goes to the root at once (plan/bind.h).
Schedule sharedAllReduce(uint32_t n);
Schedule sharedReduceScatter(uint32_t n);
Schedule sharedAllGather(uint32_t n);
Schedule sharedBroadcast(uint32_t n, uint32_t root);
Schedule sharedReduce(uint32_t n, uint32_t root);
Schedule sharedGather(uint32_t n, uint32_t root);
Schedule sharedScatter(uint32_t n, uint32_t root);
Schedule sharedAllToAll(uint32_t n);

// shared_pull.cpp: the same by loads alone, each of what it is to have. A root has all the work: for
// what is short, and where stores to others are dear. Opened. Rank order. No Tmp. No all-reduce: in
// place, sums would overwrite what others have not read.
Schedule sharedPullAllGather(uint32_t n);
Schedule sharedPullAllToAll(uint32_t n);
Schedule sharedPullBroadcast(uint32_t n, uint32_t root);
Schedule sharedPullReduce(uint32_t n, uint32_t root);
Schedule sharedPullGather(uint32_t n, uint32_t root);

// scatter_all_gather.cpp: large broadcast; the root sends the vector once. No Tmp.
Schedule scatterAllGatherBroadcast(uint32_t n, uint32_t root);

// binomial.cpp: ceil(log2 n) rounds along a binomial tree. Tmp S * log2 n (reduce).
Schedule binomialBroadcast(uint32_t n, uint32_t root);
Schedule binomialReduce(uint32_t n, uint32_t root);

// dissemination.cpp: barrier in ceil(log2 n) rounds of signals.
Schedule disseminationBarrier(uint32_t n);

// two_level.cpp: any nodes (nodes.h), given by rank; direct rails between them.
Schedule twoLevelAllReduce(const std::vector<uint32_t>& nodeOf);
Schedule twoLevelReduceScatter(const std::vector<uint32_t>& nodeOf);
Schedule twoLevelAllGather(const std::vector<uint32_t>& nodeOf);
Schedule twoLevelAllToAll(const std::vector<uint32_t>& nodeOf);
Schedule twoLevelBroadcast(const std::vector<uint32_t>& nodeOf, uint32_t root);

// even_rails.cpp: `localRanks` ranks on each of `nodes` nodes; rank = node * localRanks + local
// rank. Mesh inside the nodes, rails (ranks of equal local rank) between them. Each rail generator
// is given n = nodes.
using RailGenerator = Schedule (*)(uint32_t nodes);
Schedule railsAllReduce(uint32_t localRanks, uint32_t nodes, RailGenerator railAllReduce);
Schedule railsReduceScatter(uint32_t localRanks, uint32_t nodes, RailGenerator railReduceScatter);
Schedule railsAllGather(uint32_t localRanks, uint32_t nodes, RailGenerator railAllGather);

// forest.cpp: along trees that were packed into the links of a job (forest/forest.h), so that ranks without
// a link of their own are reached over others. One tree's sums are formed on the way to its root, own
// addend first, and each rank rounds what it sends on. Tmp: what a rank gets on the way up.
Schedule forestReduceScatter(const forest::Forest& fromAll);
Schedule forestAllGather(const forest::Forest& fromAll);
Schedule forestAllReduce(const forest::Forest& fromAll);
Schedule forestBroadcast(const forest::Forest& fromRoot);
Schedule forestReduce(const forest::Forest& fromRoot);

// compose.cpp: all-reduce (reduce) made of a reduce-scatter and an all-gather (gather), C = n
// chunks.
Schedule reduceScatterAllGather(std::string_view name, const Schedule& reduceScatter,
                                const Schedule& allGather);
Schedule reduceScatterGather(std::string_view name, const Schedule& reduceScatter,
                             const Schedule& gather);

}  // namespace weft::schedule
