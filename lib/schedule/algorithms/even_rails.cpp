// SPDX-License-Identifier: Apache-2.0
// Two levels with rails of any algorithm, for even nodes: L ranks on each of N nodes, rank = node *
// L + local rank. A full mesh inside every node, and rails between the nodes: the N ranks of equal
// local rank. Made of parts by embed. For many nodes, where direct rails (two_level.cpp) would send
// too many messages.
#include <algorithm>

#include "schedule/algorithms/generators.h"
#include "schedule/embed.h"

namespace weft::schedule {
namespace {

// Independent parts run side by side: all their puts go out before the first wait. Right only if no
// put of them depends on a wait of them, as in one-step mesh parts.
void appendPutsFirst(Program& program, Program parts) {
  std::stable_partition(parts.ops.begin(), parts.ops.end(),
                        [](const Op& op) { return op.kind == OpKind::Put; });
  for (const Op& op : parts.ops) program.append(op, parts);
}

// One block, or chunk, for each rank; over rails, of whose typical nodes the first two ranks are.
Schedule emptyRails(Collective collective, const Schedule& rail, uint32_t localRanks) {
  const uint32_t ranks = localRanks * rail.ranks;
  Schedule s = emptySchedule(collective, "two-level, " + rail.name + " rails", ranks, ranks);
  s.joinsPuts = rail.joinsPuts;
  for (const uint32_t node : rail.typical)
    for (uint32_t i = 0; i < std::min(2u, localRanks); ++i)
      s.typical.push_back(node * localRanks + i);
  return s;
}

}  // namespace

// Chunk c * N + k is summed on rail c by node k.
Schedule railsAllReduce(uint32_t localRanks, uint32_t nodes, RailGenerator railAllReduce) {
  const uint32_t L = localRanks, N = nodes, C = L * N;
  const Schedule inside = meshReduceScatter(L), rail = railAllReduce(N), spread = meshAllGather(L);
  Schedule s = emptyRails(Collective::AllReduce, rail, L);
  s.tmpChunks = C + N + rail.tmpChunks;  // mesh arrivals, this rank's partial sums, the rail's
  s.program = [=](uint32_t me) {
    const uint32_t node = me / L, localRank = me % L;
    Program p;
    embed(p, inside, localRank, [=](uint32_t r) {
      return Place{.rank = node * L + r,
                   .in = {in(0), N},
                   .out = {tmp(C), N},
                   .scale = N,
                   .chunkStep = N,
                   .finish = false};
    });
    embed(p, rail, node, [=](uint32_t r) {
      return Place{.rank = r * L + localRank,
                   .in = {tmp(C)},
                   .out = {out(localRank * N)},
                   .tmp = C + N,
                   .chunk = localRank * N};
    });
    embed(p, spread, localRank, [=](uint32_t r) {
      return Place{.rank = node * L + r,
                   .in = {out(r * N), N},
                   .out = {out(0), N},
                   .scale = N,
                   .chunkStep = N};
    });
    return p;
  };
  return s;
}

Schedule railsReduceScatter(uint32_t localRanks, uint32_t nodes, RailGenerator railReduceScatter) {
  const uint32_t L = localRanks, N = nodes, C = L * N;
  const Schedule inside = meshReduceScatter(L), rail = railReduceScatter(N);
  Schedule s = emptyRails(Collective::ReduceScatter, rail, L);
  s.tmpChunks = C + N + rail.tmpChunks;
  s.program = [=](uint32_t me) {
    const uint32_t node = me / L, localRank = me % L;
    Program p, meshes;
    for (uint32_t k = 1; k <= N; ++k) {  // the blocks of every node, one's own last
      const uint32_t target = (node + k) % N;
      embed(meshes, inside, localRank, [=](uint32_t r) {
        return Place{.rank = node * L + r,
                     .in = {in(target * L)},
                     .out = {tmp(C + target)},
                     .tmp = target * L,
                     .chunk = target * L,
                     .finish = false};
      });
    }
    appendPutsFirst(p, std::move(meshes));
    embed(p, rail, node, [=](uint32_t r) {
      return Place{.rank = r * L + localRank,
                   .in = {tmp(C)},
                   .out = {out(0)},
                   .tmp = C + N,
                   .chunk = localRank,
                   .chunkStep = L};
    });
    return p;
  };
  return s;
}

Schedule railsAllGather(uint32_t localRanks, uint32_t nodes, RailGenerator railAllGather) {
  const uint32_t L = localRanks, N = nodes;
  const Schedule rail = railAllGather(N), spread = meshAllGather(L);
  Schedule s = emptyRails(Collective::AllGather, rail, L);
  s.tmpChunks = rail.tmpChunks;
  s.program = [=](uint32_t me) {
    const uint32_t node = me / L, localRank = me % L;
    Program p, meshes;
    embed(p, rail, node, [=](uint32_t r) {
      return Place{.rank = r * L + localRank,
                   .in = {in(0)},
                   .out = {out(localRank), L},
                   .chunk = localRank,
                   .chunkStep = L};
    });
    for (uint32_t k = 0; k < N; ++k) {
      const uint32_t source = (node + k) % N;
      embed(meshes, spread, localRank, [=](uint32_t r) {
        return Place{.rank = node * L + r,
                     .in = {out(source * L + r)},
                     .out = {out(source * L)},
                     .chunk = source * L};
      });
    }
    appendPutsFirst(p, std::move(meshes));
    return p;
  };
  return s;
}

}  // namespace weft::schedule
