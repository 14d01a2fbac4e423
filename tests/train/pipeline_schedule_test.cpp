// SPDX-License-Identifier: Apache-2.0
#include "tools/train/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tools/train/pass_meter.h"
#include "tools/train/pipeline_replay.h"

namespace weft::train {
namespace {

// All passes of all runs alike.
ReplayedStep replayEqual(int64_t stages, int64_t micros, int64_t virtuals = 1, double forward = 1,
                         double backward = 2) {
  const std::vector<PassSeconds> runs(static_cast<size_t>(stages * virtuals), {forward, backward});
  return replayStep({0, stages, virtuals}, micros, runs);
}

// Most micro-batches that have gone forward and not backward.
int64_t mostInFlight(const std::vector<Turn>& turns) {
  int64_t now = 0, most = 0;
  for (const Turn& turn : turns) {
    now += turn.pass == Pass::kForward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

TEST(PipelineSchedule, EachStagePassesEachBatchOnceForwardAndThenBackward) {
  for (int64_t stages = 1; stages <= 7; ++stages)
    for (int64_t micros = 1; micros <= 12; ++micros)
      for (int64_t s = 0; s < stages; ++s) {
        const std::vector<Turn> turns = oneForwardOneBackward({s, stages}, micros);
        ASSERT_EQ(turns.size(), static_cast<size_t>(2 * micros));
        EXPECT_EQ(turns[0], (Turn{Pass::kForward, 0}));
        std::map<Pass, int64_t> next;
        for (const auto& [pass, micro, own] : turns) {
          EXPECT_EQ(micro, next[pass]++);
          EXPECT_LE(next[Pass::kBackward], next[Pass::kForward]);
        }
        EXPECT_EQ(mostInFlight(turns), std::min(stages - s, micros));
      }
}

TEST(PipelineSchedule, StagesNeverWaitForEachOther) {
  std::mt19937 random(17);
  for (int round = 0; round < 300; ++round) {
    const auto stages = static_cast<int64_t>(1 + random() % 12);
    const auto micros = static_cast<int64_t>(1 + random() % 30);
    EXPECT_NO_THROW(replayEqual(stages, micros)) << stages << " stages, " << micros;
  }
}

TEST(PipelineSchedule, IdlesAsLittleAsPublished) {
  for (int64_t stages = 1; stages <= 8; ++stages)
    for (const int64_t micros : {1, 2, 3, 8, 32})
      EXPECT_NEAR(replayEqual(stages, micros).idle, pipelineBubble({0, stages}, micros), 1e-12)
          << stages << " " << micros;
}

PipelineStage eagerStage(int64_t index, int64_t stages) { return {index, stages, 1, {}, true}; }

TEST(PipelineSchedule, EagerStagesKeepMoreAndIdleAsLittle) {
  const PassSeconds equal{1, 2};
  for (int64_t stages = 1; stages <= 8; ++stages)
    for (const int64_t micros : {1, 2, 3, 8, 32}) {
      for (int64_t s = 0; s < stages; ++s) {
        const std::vector<Turn> turns = oneForwardOneBackward(eagerStage(s, stages), micros);
        EXPECT_EQ(turns.size(), static_cast<size_t>(2 * micros));
        EXPECT_EQ(mostInFlight(turns), std::min(2 * (stages - s) - 1, micros));
      }
      const std::vector<PassSeconds> runs(static_cast<size_t>(stages), equal);
      EXPECT_NEAR(replayStep(eagerStage(0, stages), micros, runs).idle,
                  pipelineBubble({0, stages}, micros), 1e-12)
          << stages << " " << micros;
    }
}

// Every other batch takes longer, and the stages are at different ones: in 1F1B one of them is always late.
TEST(PipelineSchedule, EagerStagesDoNotWaitForEachLatePass) {
  const auto late = [](int64_t, const Turn& turn) {
    const double often = turn.pass == Pass::kForward ? 1 : 2;
    return turn.micro % 2 == 0 ? 1.5 * often : often;
  };
  const double inTime = replayStep({0, 2}, 16, late).seconds;
  const double eager = replayStep(eagerStage(0, 2), 16, late).seconds;
  EXPECT_LT(eager, 0.95 * inTime);
}

// Calls body(stages, virtual stages, micro-batches).
template <class Body>
void forVirtualStages(Body body) {
  for (int64_t stages = 2; stages <= 8; ++stages)
    for (int64_t virtuals = 2; virtuals <= 4; ++virtuals)
      for (const int64_t times : {1, 2, 5}) body(stages, virtuals, times * stages);
}

TEST(PipelineSchedule, EachRunPassesEachBatchOnceForwardAndThenBackward) {
  forVirtualStages([](int64_t stages, int64_t virtuals, int64_t micros) {
    for (int64_t s = 0; s < stages; ++s) {
      const std::vector<Turn> turns = oneForwardOneBackward({s, stages, virtuals}, micros);
      ASSERT_EQ(turns.size(), static_cast<size_t>(2 * virtuals * micros));
      EXPECT_EQ(turns.front(), (Turn{Pass::kForward, 0, 0}));
      EXPECT_EQ(turns.back(), (Turn{Pass::kBackward, micros - 1, 0}));
      std::map<Pass, std::map<int64_t, int64_t>> next;
      for (const auto& [pass, micro, own] : turns) {
        EXPECT_EQ(micro, next[pass][own]++);
        EXPECT_LE(next[Pass::kBackward][own], next[Pass::kForward][own]);
      }
      EXPECT_EQ(mostInFlight(turns),
                std::min(2 * (stages - s - 1) + (virtuals - 1) * stages + 1, virtuals * micros));
    }
  });
}

// What backward goes through in one run before it turns to another is what the shard takes at once.
TEST(PipelineSchedule, BatchesGoBackwardThroughARunTogether) {
  forVirtualStages([](int64_t stages, int64_t virtuals, int64_t micros) {
    const PipelineStage stage{1, stages, virtuals};
    int64_t seen = 0;
    for (const auto& [pass, micro, own] : oneForwardOneBackward(stage, micros)) {
      if (pass == Pass::kForward) continue;
      const int64_t together = microsTogether(stage), ofStep = together * virtuals;
      EXPECT_EQ(micro / together, seen / ofStep);
      EXPECT_EQ(own, virtuals - 1 - seen % ofStep / together);
      ++seen;
    }
  });
}

TEST(PipelineSchedule, VirtualStagesIdleAsLittleAsPublished) {
  forVirtualStages([](int64_t stages, int64_t virtuals, int64_t micros) {
    const double bubble = pipelineBubble({0, stages, virtuals}, micros);
    EXPECT_NEAR(replayEqual(stages, micros, virtuals).idle, bubble, 1e-12)
        << stages << " " << virtuals << " " << micros;
  });
}

TEST(PipelineSchedule, VirtualStagesNeverWaitForEachOtherHoweverLongPassesTake) {
  forVirtualStages([](int64_t stages, int64_t virtuals, int64_t micros) {
    for (const auto& [forward, backward] : {std::pair{1.0, 0.1}, std::pair{0.1, 1.0}})
      EXPECT_NO_THROW(replayEqual(stages, micros, virtuals, forward, backward));
  });
}

// Two stages and two batches, the second stage half as quick: its passes end at 1 + 6 and 1 + 12 seconds, and then the
// first one has a backward left. It is busy for 6 seconds of 15, the other for 12.
TEST(PipelineReplay, TellsUnequalStagesFromTheSchedule) {
  const std::vector<PassSeconds> runs = {{1, 2}, {2, 4}};
  const ReplayedStep step = replayStep({0, 2}, 2, runs);
  EXPECT_DOUBLE_EQ(step.seconds, 15);
  EXPECT_DOUBLE_EQ(step.idle, 1 - (6.0 + 12.0) / 2 / 15);
  EXPECT_GT(step.idle, pipelineBubble({0, 2}, 2));
}

// Of one run that takes longer, as the one with the head does, each batch makes all wait. The stages begin
// with 1 second, have 2 x (3 + 3) or 2 x (3 + 4) to do, and 2 for the last backward.
TEST(PipelineReplay, TakesEachRunForItself) {
  const std::vector<PassSeconds> runs = {{1, 2}, {1, 2}, {1, 2}, {1, 3}};
  const ReplayedStep step = replayStep({0, 2, 2}, 2, runs);
  EXPECT_DOUBLE_EQ(step.seconds, 17);
  EXPECT_DOUBLE_EQ(step.idle, 1 - (12.0 + 14.0) / 2 / 17);
}

TEST(PipelineReplay, OneStageIsNeverIdle) {
  const std::vector<PassSeconds> run = {{1, 2}};
  EXPECT_EQ(replayStep({}, 5, run).seconds, 15);
  EXPECT_EQ(replayStep({}, 5, run).idle, 0);
}

TEST(PipelineReplay, PassesAreMeansOfAStep) {
  PassMeter meter(2);
  meter.add({Pass::kForward, 0, 0}, 1);
  meter.add({Pass::kForward, 1, 0}, 2);
  meter.add({Pass::kBackward, 0, 1}, 4);
  for (int i = 0; i < 2; ++i) {  // a step without passes has those of the one before
    const std::vector<PassSeconds> means = meter.take();
    ASSERT_EQ(means.size(), 2U);
    EXPECT_EQ(means[0].forward, 1.5);
    EXPECT_EQ(means[0].backward, 0);
    EXPECT_EQ(means[1].backward, 4);
  }
}

}  // namespace
}  // namespace weft::train
