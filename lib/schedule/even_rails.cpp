// SPDX-License-Identifier: Apache-2.0
// Two levels with rails of any algorithm, for even nodes: L cards on each of N nodes, rank = node *
// L + card. A full mesh inside every node, and rails between the nodes: the N ranks of equal card.
// Made of parts by embed. For many nodes, where direct rails (two_level.cpp) would send too many
// messages.
#include <algorithm>

#include "schedule/embed.h"
#include "schedule/generators.h"

namespace weft {
namespace {

// Independent parts run side by side: all their puts go out before the first wait. Right only if no
// put of them depends on a wait of them, as in one-step mesh parts.
void appendPutsFirst(Program& program, Program parts) {
  std::stable_partition(parts.ops.begin(), parts.ops.end(),
                        [](const Op& op) { return op.kind == OpKind::Put; });
  for (const Op& op : parts.ops) program.append(op, parts);
}

Schedule shell(std::string name, Collective collective, uint32_t inChunks, uint32_t outChunks,
               uint32_t ranks) {
  return {.name = std::move(name),
          .collective = collective,
          .ranks = ranks,
          .inChunks = inChunks,
          .outChunks = outChunks,
          .logicalChunks = ranks};
}

}  // namespace

// Chunk c * N + k is summed on rail c by node k.
Schedule railsAllReduce(uint32_t cards, uint32_t nodes, RailGenerator railAllReduce) {
  const uint32_t L = cards, N = nodes, C = L * N;
  const Schedule inside = meshReduceScatter(L), rail = railAllReduce(N), spread = meshAllGather(L);
  Schedule s =
      shell("all-reduce two-level, " + rail.name + " rails", Collective::AllReduce, C, C, C);
  s.tmpChunks = C + N + rail.tmpChunks;  // mesh arrivals, this card's partial sums, the rail's
  s.program = [=](uint32_t me) {
    const uint32_t node = me / L, card = me % L;
    Program p;
    embed(p, inside, card, [=](uint32_t r) {
      return Place{.rank = node * L + r,
                   .in = {in(0), N},
                   .out = {tmp(C), N},
                   .scale = N,
                   .chunkStep = N,
                   .finish = false};
    });
    embed(p, rail, node, [=](uint32_t r) {
      return Place{.rank = r * L + card,
                   .in = {tmp(C)},
                   .out = {out(card * N)},
                   .tmp = C + N,
                   .chunk = card * N};
    });
    embed(p, spread, card, [=](uint32_t r) {
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

Schedule railsReduceScatter(uint32_t cards, uint32_t nodes, RailGenerator railReduceScatter) {
  const uint32_t L = cards, N = nodes, C = L * N;
  const Schedule inside = meshReduceScatter(L), rail = railReduceScatter(N);
  Schedule s = shell("reduce-scatter two-level, " + rail.name + " rails", Collective::ReduceScatter,
                     C, 1, C);
  s.tmpChunks = C + N + rail.tmpChunks;
  s.program = [=](uint32_t me) {
    const uint32_t node = me / L, card = me % L;
    Program p, meshes;
    for (uint32_t k = 1; k <= N; ++k) {  // the blocks of every node, one's own last
      const uint32_t target = (node + k) % N;
      embed(meshes, inside, card, [=](uint32_t r) {
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
      return Place{.rank = r * L + card,
                   .in = {tmp(C)},
                   .out = {out(0)},
                   .tmp = C + N,
                   .chunk = card,
                   .chunkStep = L};
    });
    return p;
  };
  return s;
}

Schedule railsAllGather(uint32_t cards, uint32_t nodes, RailGenerator railAllGather) {
  const uint32_t L = cards, N = nodes, C = L * N;
  const Schedule rail = railAllGather(N), spread = meshAllGather(L);
  Schedule s =
      shell("all-gather two-level, " + rail.name + " rails", Collective::AllGather, 1, C, C);
  s.tmpChunks = rail.tmpChunks;
  s.program = [=](uint32_t me) {
    const uint32_t node = me / L, card = me % L;
    Program p, meshes;
    embed(p, rail, node, [=](uint32_t r) {
      return Place{.rank = r * L + card,
                   .in = {in(0)},
                   .out = {out(card), L},
                   .chunk = card,
                   .chunkStep = L};
    });
    for (uint32_t k = 0; k < N; ++k) {
      const uint32_t source = (node + k) % N;
      embed(meshes, spread, card, [=](uint32_t r) {
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

}  // namespace weft
