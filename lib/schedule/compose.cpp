// SPDX-License-Identifier: Apache-2.0
#include "schedule/embed.h"
#include "schedule/generators.h"

namespace weft {

Schedule reduceScatterAllGather(std::string name, const Schedule& reduceScatter,
                                const Schedule& allGather) {
  const uint32_t n = reduceScatter.ranks, scratch = reduceScatter.tmpChunks;
  return {.name = std::move(name),
          .collective = Collective::AllReduce,
          .ranks = n,
          .inChunks = n,
          .outChunks = n,
          .tmpChunks = scratch + allGather.tmpChunks,
          .logicalChunks = n,
          .program = [=](uint32_t me) {
            Program p;
            embed(p, reduceScatter, me,
                  [](uint32_t r) { return Place{.rank = r, .in = {in(0)}, .out = {out(r)}}; });
            embed(p, allGather, me, [=](uint32_t r) {
              return Place{.rank = r, .in = {out(r)}, .out = {out(0)}, .tmp = scratch};
            });
            return p;
          }};
}

Schedule reduceScatterGather(std::string name, const Schedule& reduceScatter,
                             const Schedule& gather) {
  const uint32_t n = reduceScatter.ranks, scratch = reduceScatter.tmpChunks, root = gather.root;
  return {.name = std::move(name),
          .collective = Collective::Reduce,
          .root = root,
          .ranks = n,
          .inChunks = n,
          .outChunks = n,
          .tmpChunks = scratch + 1,
          .logicalChunks = n,
          .program = [=](uint32_t me) {
            const auto sum = [=](uint32_t r) { return r == root ? out(r) : tmp(scratch); };
            Program p;
            embed(p, reduceScatter, me,
                  [=](uint32_t r) { return Place{.rank = r, .in = {in(0)}, .out = {sum(r)}}; });
            embed(p, gather, me,
                  [=](uint32_t r) { return Place{.rank = r, .in = {sum(r)}, .out = {out(0)}}; });
            return p;
          }};
}

}  // namespace weft
