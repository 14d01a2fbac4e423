// SPDX-License-Identifier: Apache-2.0
// Every algorithm in every form on real vectors: counts around chunk borders, uneven and empty
// blocks, early, late and random delivery.
#include "bytes.h"

#include <gtest/gtest.h>

#include "forms.h"
#include "schedule/chunks.h"

namespace weft::test {
namespace {

// Is the logical chunk a rank's block, of any length?
bool hasUnevenBlocks(Collective c) {
  return c == Collective::AllGather || c == Collective::ReduceScatter || c == Collective::Gather ||
         c == Collective::Scatter;
}

std::vector<std::vector<size_t>> lengthsFor(const Schedule& s) {
  const size_t chunks = s.logicalChunks;
  std::vector<std::vector<size_t>> all;
  if (s.collective == Collective::AllToAll || s.collective == Collective::Barrier)
    return {std::vector<size_t>(chunks, 0), std::vector<size_t>(chunks, 1),
            std::vector<size_t>(chunks, 5)};
  for (size_t count : {size_t{0}, size_t{1}, chunks - 1, chunks, chunks + 1, 7 * chunks + 3})
    for (size_t align : {size_t{1}, size_t{4}}) {
      const Chunks cut = Chunks::of(count, chunks, align);
      all.emplace_back();
      for (size_t c = 0; c < chunks; ++c) all.back().push_back(cut.length(c));
    }
  if (hasUnevenBlocks(s.collective)) {
    all.emplace_back();
    for (size_t c = 0; c < chunks; ++c) all.back().push_back(c * 5 % 4);  // 0 1 2 3 0 ...
  }
  return all;
}

void runAll(const Form& form) {
  const Schedule& s = form.schedule;
  for (const auto& lengths : lengthsFor(s)) {
    ByteRun bytes(s, lengths, form.options.inPlace);
    for (Delivery delivery : {Delivery::Early, Delivery::Late, Delivery::Random})
      for (unsigned seed = 0; seed < (delivery == Delivery::Random ? 4 : 1); ++seed)
        ASSERT_EQ(bytes.run(delivery, seed), "")
            << s.name << ", " << s.ranks << " ranks, root " << s.root
            << (form.options.inPlace ? ", in place" : "") << ", first chunk of " << lengths[0];
  }
}

TEST(ScheduleBytes, EveryAlgorithmInEveryForm) {
  for (const Algorithm& a : algorithms()) {
    std::vector<Shape> shapes;
    for (uint32_t n : {1u, 2u, 3u, 4u, 5u, 7u, 8u})
      if (a.levels == Levels::One) shapes.push_back({.ranks = n, .root = n / 2});
    for (uint32_t cards : {1u, 2u, 3u})
      for (uint32_t nodes : {1u, 2u, 3u})
        if (a.levels != Levels::One)
          shapes.push_back({.ranks = cards * nodes, .root = cards * nodes / 2, .cards = cards});
    for (const Shape& shape : shapes)
      for (const Form& form : allForms(a, shape)) runAll(form);
  }
}

// The executor must be able to see late reads: one-shot overwrites its own source in place.
TEST(ScheduleBytes, LateDeliveryShowsAnUnsafeSchedule) {
  const Algorithm& oneShot = *findAlgorithm(Collective::AllReduce, "one-shot");
  const Schedule s = oneShot.make({.ranks = 4});
  ByteRun bytes(s, {3}, true);
  EXPECT_NE(bytes.run(Delivery::Late, 0), "");
}

TEST(Chunks, CoverTheVectorWithoutGapOrOverlap) {
  for (size_t count = 0; count < 70; ++count)
    for (size_t chunks = 1; chunks < 20; ++chunks)
      for (size_t align : {size_t{1}, size_t{2}, size_t{16}}) {
        const Chunks cut = Chunks::of(count, chunks, align);
        size_t at = 0;
        for (size_t c = 0; c < chunks; ++c) {
          ASSERT_EQ(cut.offset(c), at);
          ASSERT_LE(cut.length(c), cut.stride);
          if (cut.length(c) > 0) {
            ASSERT_EQ(at % align, 0u);
          }
          at += cut.length(c);
        }
        ASSERT_EQ(at, count);
        ASSERT_EQ(cut.length(0, chunks), count);
      }
}

}  // namespace
}  // namespace weft::test
