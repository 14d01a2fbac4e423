// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/spread.h"

#include <gtest/gtest.h>

namespace weft::accuracy {
namespace {

// One point of one job of so many ranks on two cores, predicted as 100 ns.
struct Case {
  Case(std::uint32_t ranks, std::size_t bytes, const Turns& turns) {
    world.ranks = ranks;
    world.tuning.costs.cores = 2;
    world.points = {{{&perf::parseCollective("all_reduce"), bytes, false, Mode::Steady},
                     "form",
                     1,
                     {{"", turns, 100}},
                     {}}};
    verdict =
        judged(world, world.points[0], {{"form", 1, 100, 100, 95, 105, Turns(turns.size(), 100)}});
  }
  Case(const Case&) = delete;

  World world;
  Verdict verdict;
};

TEST(Spread, AnIntervalHoldsWhatOtherMachinesHaveMissed) {
  const Case elsewhere(2, 1 << 20, {80, 100, 120, 140, 160, 180, 200});
  Case here(2, 4 << 20, {82, 99, 150, 190, 205});
  EXPECT_EQ(here.verdict.inside, 1u);
  std::vector<Verdict> verdicts{here.verdict};
  widen(Spread({elsewhere.verdict}), &verdicts);
  EXPECT_NEAR(verdicts[0].forecasts[0].lowNs, 86, 1e-9);
  EXPECT_NEAR(verdicts[0].forecasts[0].highNs, 194, 1e-9);
  EXPECT_EQ(verdicts[0].inside, 3u);
}

TEST(Spread, OtherKindsOfPointsSayNothing) {
  const Case elsewhere(2, 1 << 20, {50, 300});
  for (const auto& [ranks, bytes] : {std::pair{2u, std::size_t{8}}, {4u, std::size_t{1} << 20}}) {
    Case here(ranks, bytes, {98, 200});
    std::vector<Verdict> verdicts{here.verdict};
    widen(Spread({elsewhere.verdict}), &verdicts);
    EXPECT_EQ(verdicts[0].forecasts[0].lowNs, 95);
    EXPECT_EQ(verdicts[0].forecasts[0].highNs, 105);
    EXPECT_EQ(verdicts[0].inside, 1u);
  }
}

}  // namespace
}  // namespace weft::accuracy
