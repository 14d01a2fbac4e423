// SPDX-License-Identifier: Apache-2.0
// Every algorithm in every form on real vectors: counts around chunk borders, uneven and empty
// blocks, early, late and random delivery.
#include "bytes.h"

#include <gtest/gtest.h>

#include "forms.h"

namespace weft::test {
using namespace schedule;
namespace {

// Is the logical chunk a rank's block, of any length?
bool hasUnevenBlocks(Collective c) {
  return c == Collective::AllGather || c == Collective::ReduceScatter || c == Collective::Gather ||
         c == Collective::Scatter;
}

// Chunks of one length, a multiple of `align`, but for the last ones, which may be short or empty.
std::vector<size_t> cut(size_t count, size_t chunks, size_t align) {
  const size_t stride = ((count + chunks - 1) / chunks + align - 1) / align * align;
  std::vector<size_t> lengths;
  for (size_t c = 0; c < chunks; ++c)
    lengths.push_back(std::min((c + 1) * stride, count) - std::min(c * stride, count));
  return lengths;
}

std::vector<std::vector<size_t>> lengthsFor(const Schedule& s) {
  const size_t chunks = s.logicalChunks;
  std::vector<std::vector<size_t>> all;
  if (s.collective == Collective::AllToAll || s.collective == Collective::Barrier)
    return {std::vector<size_t>(chunks, 0), std::vector<size_t>(chunks, 1),
            std::vector<size_t>(chunks, 5)};
  for (size_t count : {size_t{0}, size_t{1}, chunks - 1, chunks, chunks + 1, 7 * chunks + 3})
    for (size_t align : {size_t{1}, size_t{4}}) all.push_back(cut(count, chunks, align));
  if (hasUnevenBlocks(s.collective)) {
    all.emplace_back();
    for (size_t c = 0; c < chunks; ++c) all.back().push_back(c * 5 % 4);  // 0 1 2 3 0 ...
  }
  return all;
}

const std::vector<uint32_t> kRanks =
    kSlowBuild ? std::vector<uint32_t>{1, 2, 3, 5} : std::vector<uint32_t>{1, 2, 3, 4, 5, 7, 8};

void runAll(const Form& form) {
  const Schedule& s = form.schedule;
  for (const auto& lengths : lengthsFor(s)) {
    ByteRun bytes(s, lengths);
    for (Delivery delivery : {Delivery::Early, Delivery::Late, Delivery::Random})
      for (unsigned seed = 0; seed < (delivery == Delivery::Random ? 4 : 1); ++seed)
        ASSERT_EQ(bytes.run(delivery, seed), "") << s.name << ", " << s.ranks << " ranks, root "
                                                 << s.root << ", first chunk of " << lengths[0];
  }
}

TEST(ScheduleBytes, EveryAlgorithmInEveryForm) {
  for (const Algorithm& a : algorithms()) {
    std::vector<Shape> shapes;
    for (uint32_t n : kRanks)
      if (a.levels == Levels::One) shapes.push_back({.ranks = n, .root = n / 2});
    for (uint32_t localRanks : {1u, 2u, 3u})
      for (uint32_t nodes : {1u, 2u, 3u})
        if (a.levels != Levels::One)
          shapes.push_back({.ranks = localRanks * nodes,
                            .root = localRanks * nodes / 2,
                            .localRanks = localRanks});
    for (const Shape& shape : shapes)
      for (const Form& form : allForms(a, shape)) runAll(form);
  }
}

// The executor must be able to see late reads: here the root overwrites what it has put.
TEST(ScheduleBytes, LateDeliveryShowsAnUnsafeSchedule) {
  Schedule s = directBroadcast(2, 0);
  s.tmpChunks = 1;
  s.program = [inner = s.program](uint32_t me) {
    if (me == 1) return inner(me);
    Program p;
    p.copy(in(0), tmp(0), {0});
    p.put(1, tmp(0), out(0), {0});
    p.apply(ApplyId::Finish, tmp(0), tmp(0), {0});
    p.copy(in(0), out(0), {0});
    return p;
  };
  ByteRun bytes(s, {3});
  EXPECT_EQ(bytes.run(Delivery::Early, 0), "");
  EXPECT_NE(bytes.run(Delivery::Late, 0), "");
}

}  // namespace
}  // namespace weft::test
