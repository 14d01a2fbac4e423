// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace weft::accuracy {
namespace {

Sweep sweep() {
  return {{&perf::parseCollective("all_reduce"), &perf::parseCollective("gather")},
          {8, 512, 64 << 10, 64 << 20},
          {false, true},
          {Mode::Steady, Mode::Fresh}};
}

TEST(Points, EachOfTheSweepComesOnceAndLongOnesLast) {
  const std::vector<Point> points = inOrder(sweep());
  ASSERT_EQ(points.size(), 32u);
  std::set<std::string> texts;
  for (const Point& point : points) texts.insert(textOf(point));
  EXPECT_EQ(texts.size(), points.size());
  EXPECT_TRUE(std::all_of(points.begin(), points.begin() + 24,
                          [](const Point& point) { return point.bytes <= 4 << 20; }));
}

TEST(Points, AThirdOfThemHasSeenEachCollectiveAndBothModes) {
  const std::vector<Point> points = inOrder(sweep());
  std::set<std::string> collectives;
  std::set<std::size_t> sizes;
  std::set<Mode> modes;
  for (std::size_t i = 0; i < 8; ++i) {
    collectives.insert(points[i].collective->name);
    sizes.insert(points[i].bytes);
    modes.insert(points[i].mode);
  }
  EXPECT_EQ(collectives.size(), 2u);
  EXPECT_EQ(modes.size(), 2u);
  EXPECT_GT(sizes.size(), 1u);
}

TEST(Points, TinyBlocksHaveOneElement) {
  const Point point{&perf::parseCollective("alltoall"), 8, false, Mode::Steady};
  EXPECT_EQ(problemOf(point, 0, 4).count, 1u);
  EXPECT_EQ(problemOf(point, 0, 2).count, 1u);
}

TEST(Points, AreNamedForPeople) {
  EXPECT_EQ(textOf({&perf::parseCollective("broadcast"), 64 << 10, true, Mode::Fresh}),
            "broadcast 64K own fresh");
  EXPECT_EQ(sizeText(3 << 20), "3M");
  EXPECT_EQ(sizeText(1000), "1000");
  EXPECT_EQ(parseMode("fresh"), Mode::Fresh);
  EXPECT_THROW(parseMode("stale"), std::invalid_argument);
}

}  // namespace
}  // namespace weft::accuracy
