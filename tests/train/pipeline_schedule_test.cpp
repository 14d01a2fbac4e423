// SPDX-License-Identifier: Apache-2.0
#include "tools/train/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace weft::train {
namespace {

// All stages of a pipeline, each at one of its turns.
class Pipeline {
 public:
  Pipeline(int64_t stages, int64_t micros) {
    for (int64_t s = 0; s < stages; ++s)
      stages_.push_back({oneForwardOneBackward({s, stages}, micros)});
  }

  // Runs until all have ended or none can go on: how long that took if each forward takes `forward` and
  // each backward `backward`; -1 where it got stuck. As in StageLinks a stage goes on beside a send,
  // but waits for the one before it in that direction.
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
  struct Stage {
    std::vector<Turn> turns;
    size_t next = 0;
    double time = 0;
    std::map<Pass, std::map<int64_t, double>> sent = {};  // and not received, with when
  };

  bool advance(size_t s, double forward, double backward) {
    Stage& stage = stages_[s];
    if (stage.next == stage.turns.size()) return false;
    const auto [pass, micro] = stage.turns[stage.next];
    const bool isForward = pass == Pass::kForward, isFirst = s == 0,
               isLast = s + 1 == stages_.size();
    const bool receives = isForward ? !isFirst : !isLast, sends = isForward ? !isLast : !isFirst;
    if (sends && !stage.sent[pass].empty()) return false;
    if (receives) {
      auto& from = stages_[isForward ? s - 1 : s + 1].sent[pass];
      const auto found = from.find(micro);
      if (found == from.end()) return false;
      stage.time = std::max(stage.time, found->second);
      from.erase(found);
    }
    stage.time += isForward ? forward : backward;
    if (sends) stage.sent[pass][micro] = stage.time;
    ++stage.next;
    return true;
  }

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
        for (const auto& [pass, micro] : turns) {
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
      EXPECT_NEAR(1 - busy / all, pipelineBubble(stages, micros), 1e-12) << stages << " " << micros;
    }
}

}  // namespace
}  // namespace weft::train
