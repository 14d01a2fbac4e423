// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "perf/accuracy/report.h"
#include "tune/machine.h"

namespace weft::accuracy {
namespace {

tune::Machine machine() {
  tune::Machine m;
  m.cacheBytes = 1 << 20, m.sharers = 2, m.exchangeNs = 100, m.messageNs = 5;
  m.handOverNs = 1000, m.foldNear = 50, m.cmaCallNs = 500;
  m.load = m.copy = m.put = m.take = m.stream = m.cmaPut = m.cmaTake = tune::flat(20);
  return m;
}

tune::Machine slower() {
  tune::Machine m = machine();
  m.load = m.copy = m.put = m.take = m.stream = tune::flat(10);
  return m;
}

// Two ranks that have made one call, in two forms.
World world() {
  World world;
  world.ranks = 2;
  world.tuning.ranks = 2;
  world.tuning.nodes = {0, 0};
  world.tuning.direct = world.tuning.shares = true;
  world.tuning.costs.machine = machine();
  world.tuning.costs.cores = 2;
  world.states = {{machine(), {50, 50}}, {slower(), {100, 100}}, {machine(), {50, 50}}};
  world.planned = 1;
  const Point point{&perf::parseCollective("all_reduce"), 1 << 20, false, Mode::Steady};
  world.points = {
      {point,
       "all-reduce mesh+staged",
       1,
       {{"", {10, 12, 11, 12}, 10}, {"one-shot", {20, 22, 21, 22}, 20}, {"mesh", {}, 90}},
       {0, 0, 0, 1}}};
  return world;
}

Forecast forecast(std::uint64_t hash, double ns) {
  return {"form", hash, ns, ns, 0.9 * ns, 1.1 * ns, Turns(4, ns)};
}

TEST(Verdicts, TheChoiceIsJudgedByItsOwnTurns) {
  const World one = world();
  const Verdict verdict =
      judged(one, one.points[0], {forecast(1, 11.5), forecast(2, 30), forecast(1, 11.5)});
  EXPECT_TRUE(verdict.isSame && verdict.isMeasured);
  EXPECT_DOUBLE_EQ(verdict.measuredNs, 11.5);
  EXPECT_NEAR(verdict.error, (11.5 / 11 + 11.5 / 12) / 2 - 1, 1e-12);
  EXPECT_EQ(verdict.samples, 4u);
  EXPECT_EQ(verdict.inside, 3u);  // 10 lies below 10.35
  EXPECT_DOUBLE_EQ(verdict.regret, 1);
  EXPECT_EQ(verdict.best, 0u);
  EXPECT_EQ(verdict.otherErrors.size(), 1u);
}

TEST(Verdicts, AnotherModelsChoiceIsJudgedByTheFormThatItTakes) {
  const World one = world();
  const Verdict verdict =
      judged(one, one.points[0], {forecast(2, 30), forecast(2, 30), forecast(1, 11)});
  EXPECT_FALSE(verdict.isSame);
  EXPECT_TRUE(verdict.isMeasured);
  EXPECT_EQ(verdict.chosen, 1u);
  EXPECT_DOUBLE_EQ(verdict.measuredNs, 21.5);
}

// Who of a core is the first to enter a fresh call follows from the barriers around it: the root, so that
// its neighbour finds what has been sent.
TEST(Verdicts, AFreshCallOfASharedCoreIsOneOfManyInARow) {
  World one = world();
  one.ranks = one.tuning.ranks = 3;
  one.tuning.nodes = {0, 0, 0};
  for (State& state : one.states) state.machine.handOverNs = 10000;
  one.points[0].point = {&perf::parseCollective("broadcast"), 8, false, Mode::Fresh};
  std::unique_ptr<const Predictor> predictor;
  ASSERT_TRUE(Predictor::make(one, &predictor).ok());
  Forecast forecast;
  ASSERT_TRUE(predictor->forecast(one.points[0], "", &forecast).ok());
  EXPECT_GT(forecast.ns, 10000);
  EXPECT_LT(forecast.ns, 15000) << "one hand-over";
}

TEST(Verdicts, WhatWasNotMeasuredIsLeftOut) {
  const World one = world();
  const Verdict verdict =
      judged(one, one.points[0], {forecast(3, 30), forecast(2, 30), forecast(3, 11)});
  EXPECT_FALSE(verdict.isMeasured);
  const Tally tally = tallyOf({verdict}, [](const Verdict&) { return true; });
  EXPECT_EQ(tally.errors.points, 0u);
}

TEST(Verdicts, EveryFormIsPredicted) {
  const std::vector<World> worlds{world()};
  std::vector<Verdict> verdicts;
  ASSERT_TRUE(judgeAll(worlds, &verdicts).ok());
  ASSERT_EQ(verdicts.size(), 1u);
  for (const Forecast& forecast : verdicts[0].forecasts) {
    EXPECT_GT(forecast.ns, 1e4) << forecast.algorithm;
    EXPECT_LE(forecast.lowNs, forecast.ns) << forecast.algorithm;
    EXPECT_GE(forecast.highNs, forecast.ns) << forecast.algorithm;
    // Each turn by the state before it; the interval has those that came after, too.
    ASSERT_EQ(forecast.turns.size(), 4u);
    EXPECT_EQ(forecast.turns[2], forecast.turns[0]) << forecast.algorithm;
    EXPECT_GT(forecast.turns[3], 1.2 * forecast.turns[0]) << forecast.algorithm;
    EXPECT_EQ(forecast.ns, forecast.turns[0]) << forecast.algorithm;
    EXPECT_EQ(forecast.highNs, forecast.turns[3]) << forecast.algorithm;
  }
  EXPECT_GT(verdicts[0].forecasts[1].modelNs, 1e4);
}

// What is written is read again to the last bit, and predicts the same.
TEST(Worlds, AreReadAsTheyWereWritten) {
  const World one = world();
  World read;
  ASSERT_TRUE(readWorld(jsonOf(one), &read).ok());
  EXPECT_EQ(jsonOf(read), jsonOf(one));
  EXPECT_EQ(read.tuning.costs.machine, one.tuning.costs.machine);
  EXPECT_EQ(read.points[0].forms[1].turns, one.points[0].forms[1].turns);
}

TEST(Worlds, WhatIsNoneIsAnErrorWithItsFix) {
  World read;
  nlohmann::ordered_json json = jsonOf(world());
  json["tuning"]["machine"] = "fast";
  EXPECT_EQ(readWorld(json, &read).code(), Code::InvalidArgument);
  json = jsonOf(world());
  json["points"][0]["states"] = {0, 0, 0, 3};
  EXPECT_NE(readWorld(json, &read).text().find("turns follow no state of the machine"),
            std::string::npos);
  json = jsonOf(world());
  json["points"][0].erase("forms");
  EXPECT_NE(readWorld(json, &read).text().find("fix: a file of weft-accuracy --json"),
            std::string::npos);
  Head head;
  std::vector<World> worlds;
  EXPECT_EQ(readReport("/dev/null", &head, &worlds).code(), Code::InvalidArgument);
}

}  // namespace
}  // namespace weft::accuracy
