// SPDX-License-Identifier: Apache-2.0
#include "tools/train/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

namespace weft::train {
namespace {

// All stages of a pipeline, each at one of its turns.
class Pipeline {
 public:
  Pipeline(int64_t stages, int64_t micros, int64_t virtuals = 1) : runs_(stages * virtuals) {
    for (int64_t s = 0; s < stages; ++s)
      stages_.push_back({oneForwardOneBackward({s, stages, virtuals}, micros)});
  }

  // Runs until all have ended or none can go on: how long that took if each forward takes `forward` and
  // each backward `backward`; -1 where it got stuck. As in StageLinks a stage goes on beside two sends,
  // but waits for the last but one in that direction; what it receives is what was sent first.
  double run(double forward, double backward) {
    bool goesOn = true;
    while (std::exchange(goesOn, false))
      for (size_t s = 0; s < stages_.size(); ++s)
        while (advance(s, forward, backward)) goesOn = true;
    double end = 0;
    for (const Stage& stage : stages_) {
      if (stage.next < stage.turns.size()) return -1;
      end = std::max(end, stage.time);
    }
    return end;
  }

  const std::vector<Turn>& turns(size_t stage) const { return stages_[stage].turns; }

 private:
  struct Sent {
    int64_t run, micro;
    double when;
  };
  struct Stage {
    std::vector<Turn> turns;
    size_t next = 0;
    double time = 0;
    std::map<Pass, std::deque<Sent>> sent = {};  // and not received
  };

  bool advance(size_t s, double forward, double backward) {
    Stage& stage = stages_[s];
    if (stage.next == stage.turns.size()) return false;
    const auto [pass, micro, own] = stage.turns[stage.next];
    const auto stages = stages_.size();
    const int64_t run = own * static_cast<int64_t>(stages) + static_cast<int64_t>(s);
    const bool isForward = pass == Pass::kForward, isFirst = run == 0, isLast = run + 1 == runs_;
    const bool receives = isForward ? !isFirst : !isLast, sends = isForward ? !isLast : !isFirst;
    if (sends && stage.sent[pass].size() == 2) return false;
    if (receives) {
      auto& from = stages_[(s + (isForward ? stages - 1 : 1)) % stages].sent[pass];
      if (from.empty()) return false;
      EXPECT_EQ(from.front().micro, micro);
      EXPECT_EQ(from.front().run, isForward ? run - 1 : run + 1);
      stage.time = std::max(stage.time, from.front().when);
      from.pop_front();
    }
    stage.time += isForward ? forward : backward;
    if (sends) stage.sent[pass].push_back({run, micro, stage.time});
    ++stage.next;
    return true;
  }

  int64_t runs_;
  std::vector<Stage> stages_;
};

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
    EXPECT_GE(Pipeline(stages, micros).run(1, 2), 0) << stages << " stages, " << micros;
  }
}

TEST(PipelineSchedule, IdlesAsLittleAsPublished) {
  for (int64_t stages = 1; stages <= 8; ++stages)
    for (const int64_t micros : {1, 2, 3, 8, 32}) {
      const double busy = static_cast<double>(micros) * 3, all = Pipeline(stages, micros).run(1, 2);
      EXPECT_NEAR(1 - busy / all, pipelineBubble({0, stages}, micros), 1e-12)
          << stages << " " << micros;
    }
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
    const double busy = static_cast<double>(virtuals * micros) * 3,
                 all = Pipeline(stages, micros, virtuals).run(1, 2);
    EXPECT_NEAR(1 - busy / all, pipelineBubble({0, stages, virtuals}, micros), 1e-12)
        << stages << " " << virtuals << " " << micros;
  });
}

TEST(PipelineSchedule, VirtualStagesNeverWaitForEachOtherHoweverLongPassesTake) {
  forVirtualStages([](int64_t stages, int64_t virtuals, int64_t micros) {
    for (const auto& [forward, backward] : {std::pair{1.0, 0.1}, std::pair{0.1, 1.0}})
      EXPECT_GE(Pipeline(stages, micros, virtuals).run(forward, backward), 0);
  });
}

}  // namespace
}  // namespace weft::train
