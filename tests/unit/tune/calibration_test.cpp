// SPDX-License-Identifier: Apache-2.0
#include "tune/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/unit/plan/sample_machine.h"

namespace weft::tune {
namespace {

Round quiet(const Machine& machine = plan::sampleMachine()) { return {machine, true, true}; }

Calibration after(std::initializer_list<Round> rounds) {
  Calibration known;
  for (const Round& round : rounds) known = with(known, round, 1);
  return known;
}

// As load disturbs it: each figure worse by up to `factor`, never better.
Machine disturbed(double factor, std::mt19937* random) {
  std::uniform_real_distribution<double> worse(0, std::log(factor));
  Machine m = plan::sampleMachine();
  for (double* ns : {&m.exchangeNs, &m.messageNs, &m.handOverNs, &m.cmaCallNs})
    *ns *= std::exp(worse(*random));
  m.foldNear /= std::exp(worse(*random));
  for (Curve* curve : {&m.load, &m.copy, &m.put, &m.take, &m.stream, &m.cmaPut, &m.cmaTake})
    for (double& rate : curve->at) rate /= std::exp(worse(*random));
  return m;
}

TEST(Calibration, ASecondQuietRoundThatAgreesSettlesIt) {
  EXPECT_TRUE(after({quiet()}).provisional()) << "nothing has borne it out";
  EXPECT_FALSE(after({quiet(), quiet()}).provisional());
  for (const double factor : {2.0, 0.5}) {
    Machine other = plan::sampleMachine();
    other.copy.at[3] *= factor;
    EXPECT_TRUE(after({quiet(), quiet(other)}).provisional());
    EXPECT_FALSE(after({quiet(other), quiet(), quiet(), quiet()}).provisional());
  }
}

// One lucky round in four is not what calls meet, nor are the worse half of them.
TEST(Calibration, IsTheUpperQuartileOfTheLatestRounds) {
  Calibration known;
  for (const double copy : {900.0, 50.0, 10.0, 45.0, 90.0, 20.0, 48.0, 30.0, 46.0}) {
    Machine machine = plan::sampleMachine();
    machine.copy = flat(copy);
    machine.exchangeNs = 1e4 / copy;
    known = with(known, quiet(machine), 1);
  }
  EXPECT_EQ(known.machine().copy, flat(46));
  EXPECT_EQ(known.machine().exchangeNs, 1e4 / 46);
}

TEST(Calibration, BusyAndIncompleteRoundsSettleNothing) {
  Round busy = quiet(), incomplete = quiet();
  busy.quiet = false;
  incomplete.complete = false;
  EXPECT_TRUE(after({quiet(), busy}).provisional());
  EXPECT_TRUE(after({quiet(), incomplete}).provisional());
  EXPECT_TRUE(after({incomplete, quiet()}).provisional());
  EXPECT_FALSE(after({incomplete, quiet(), quiet()}).provisional());
}

TEST(Calibration, AMachineThatIsNeverQuietIsNotMeasuredForEver) {
  Round busy = quiet();
  busy.quiet = false;
  Calibration known;
  for (std::uint32_t i = 0; i < Calibration::kMostRounds; ++i) {
    EXPECT_TRUE(i == 0 || known.provisional());
    known = with(known, busy, 1);
  }
  EXPECT_FALSE(known.settled);
  EXPECT_FALSE(known.provisional());
}

// A round that found no second core leaves 0, which is no time to be proud of.
TEST(Calibration, WhatWasNotMeasuredDoesNotCountAsBest) {
  Machine alone = plan::sampleMachine();
  alone.exchangeNs = 0;
  alone.put = alone.take = {};
  for (const auto& rounds :
       {after({{alone, false, false}, quiet()}), after({quiet(), {alone, false, false}})})
    EXPECT_EQ(rounds.machine(), plan::sampleMachine());
}

// Calibrated beside others first: what is there when it settles is what a quiet machine would say.
TEST(Calibration, ConvergesFromABusyMachine) {
  std::mt19937 random(7);
  for (int seed = 0; seed < 100; ++seed) {
    Calibration known;
    for (int i = 0; i < 6; ++i) known = with(known, {disturbed(5, &random), i % 2 == 0, false}, 1);
    EXPECT_TRUE(known.provisional());
    while (known.provisional()) known = with(known, quiet(disturbed(1.05, &random)), 1);
    EXPECT_TRUE(known.settled);
    EXPECT_LE(differenceOf(known.machine(), plan::sampleMachine()), 1.5);
  }
}

// It was frozen for ever after three doubts, and told of a state that had passed long before.
TEST(Calibration, IsProvisionalAgainAfterAnHour) {
  Calibration known = after({quiet(), quiet()});
  known.doubts = Calibration::kMostDoubts;
  known.when = 1'000'000;
  const std::int64_t soon = known.when + Calibration::kHoldsSeconds - 1;
  EXPECT_EQ(at(soon, known), known);
  for (const std::int64_t later : {soon + 1, known.when - Calibration::kHoldsSeconds}) {
    const Calibration old = at(later, known);
    EXPECT_TRUE(old.provisional());
    EXPECT_EQ(old.doubts, 0u);
    EXPECT_EQ(old.machine(), known.machine());
    EXPECT_FALSE(with(old, quiet(), later).provisional()) << "the machine is as it was";
  }
  known.rounds = Calibration::kMostRounds;
  known.settled = false;
  Calibration old = at(soon + 1, known);
  Machine other = plan::sampleMachine();
  other.put = flat(1);
  for (std::uint32_t i = 0; i < Calibration::kKept; ++i) old = with(old, quiet(other), soon + 1);
  EXPECT_EQ(old.machine(), other) << "it is another one";
  EXPECT_EQ(at(soon, Calibration{}), Calibration{});
}

TEST(Calibration, SaysWhenAndHowItCameAbout) {
  EXPECT_EQ(historyOf({.rounds = 1, .complete = true, .when = 1767225600}),
            "measured 2026-01-01 00:00 UTC, one round, provisional: measured again for the next "
            "communicator");
  EXPECT_EQ(
      historyOf({.rounds = 3, .doubts = 1, .complete = true, .settled = true, .when = 1767225600}),
      "measured 2026-01-01 00:00 UTC, 3 rounds, settled, anew because calls did not take "
      "what it said (1 time)");
  EXPECT_EQ(historyOf({.rounds = Calibration::kMostRounds}),
            "measured 1970-01-01 00:00 UTC, 16 rounds, on a machine that is never quiet, some "
            "costs between cores estimated");
}

}  // namespace
}  // namespace weft::tune
