// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "schedule/algorithms/generators.h"
#include "schedule/embed.h"

namespace weft::schedule {
namespace {

// What holds of a schedule if it holds of a part of it.
void takeFrom(const Schedule& part, Schedule& whole) {
  whole.tmpChunks += part.tmpChunks;
  whole.joinsPuts = whole.joinsPuts || part.joinsPuts;
  whole.isPaced = whole.isPaced || part.isPaced;
  whole.hops = std::max(whole.hops, part.hops);
  whole.segmentBytes = std::max(whole.segmentBytes, part.segmentBytes);
  whole.typical.insert(whole.typical.end(), part.typical.begin(), part.typical.end());
}

}  // namespace

Schedule reduceScatterAllGather(std::string_view name, const Schedule& reduceScatter,
                                const Schedule& allGather) {
  const uint32_t n = reduceScatter.ranks, scratch = reduceScatter.tmpChunks;
  const uint32_t parts = reduceScatter.parts;
  Schedule s = emptySchedule(Collective::AllReduce, name, n, n, 0, parts);
  takeFrom(reduceScatter, s);
  takeFrom(allGather, s);
  s.program = [=](uint32_t me) {
    Program p;
    embed(p, reduceScatter, me,
          [=](uint32_t r) { return Place{.rank = r, .in = {in(0)}, .out = {out(r * parts)}}; });
    embed(p, allGather, me, [=](uint32_t r) {
      return Place{.rank = r, .in = {out(r * parts)}, .out = {out(0)}, .tmp = scratch};
    });
    return p;
  };
  return s;
}

Schedule reduceScatterGather(std::string_view name, const Schedule& reduceScatter,
                             const Schedule& gather) {
  const uint32_t n = reduceScatter.ranks, scratch = reduceScatter.tmpChunks, root = gather.root;
  Schedule s = emptySchedule(Collective::Reduce, name, n, n, root);
  takeFrom(reduceScatter, s);
  ++s.tmpChunks;
  s.program = [=](uint32_t me) {
    const auto sum = [=](uint32_t r) { return r == root ? out(r) : tmp(scratch); };
    Program p;
    embed(p, reduceScatter, me,
          [=](uint32_t r) { return Place{.rank = r, .in = {in(0)}, .out = {sum(r)}}; });
    embed(p, gather, me,
          [=](uint32_t r) { return Place{.rank = r, .in = {sum(r)}, .out = {out(0)}}; });
    return p;
  };
  return s;
}

}  // namespace weft::schedule
