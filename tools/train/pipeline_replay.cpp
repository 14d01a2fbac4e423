// SPDX-License-Identifier: Apache-2.0
#include "tools/train/pipeline_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>

namespace weft::train {
namespace {

constexpr size_t kSendsUnderWay = 2;

struct Sent {
  Turn from;
  double when;
};

struct Stage {
  PipelineStage place;
  std::vector<Turn> turns;
  size_t next = 0;
  double time = 0, busy = 0;
  std::map<Pass, std::deque<Sent>> sent = {};  // and not received
};

class Pipeline {
 public:
  Pipeline(const PipelineStage& any, int64_t micros, const TurnSeconds& seconds)
      : seconds_(seconds) {
    PipelineStage stage = any;
    for (stage.index = 0; stage.index < stage.count; ++stage.index)
      stages_.push_back({stage, oneForwardOneBackward(stage, micros)});
  }

  ReplayedStep run() {
    for (bool goesOn = true; std::exchange(goesOn, false);)
      for (Stage& stage : stages_)
        while (advance(stage)) goesOn = true;
    ReplayedStep step;
    double busy = 0;
    for (const Stage& stage : stages_) {
      if (stage.next < stage.turns.size())
        throw std::logic_error(fmt::format("stage {} of a pipeline waits forever in its turn {}",
                                           stage.place.index, stage.next));
      step.seconds = std::max(step.seconds, stage.time);
      busy += stage.busy;
    }
    if (step.seconds > 0)
      step.idle = 1 - busy / (static_cast<double>(stages_.size()) * step.seconds);
    return step;
  }

 private:
  // One turn, if what it needs is there.
  bool advance(Stage& stage) {
    if (stage.next == stage.turns.size()) return false;
    const Turn& turn = stage.turns[stage.next];
    const int64_t run = stage.place.run(turn.own), last = stage.place.runs() - 1;
    const bool isForward = turn.pass == Pass::kForward;
    const bool receives = run != (isForward ? 0 : last), sends = run != (isForward ? last : 0);
    if (sends && stage.sent[turn.pass].size() == kSendsUnderWay) return false;
    if (receives && !receive(stage, turn)) return false;
    const double seconds = seconds_(stage.place.index, turn);
    stage.time += seconds;
    stage.busy += seconds;
    if (sends) stage.sent[turn.pass].push_back({turn, stage.time});
    ++stage.next;
    return true;
  }

  bool receive(Stage& stage, const Turn& turn) {
    const int64_t toSender = turn.pass == Pass::kForward ? stage.place.count - 1 : 1;
    Stage& sender =
        stages_[static_cast<size_t>((stage.place.index + toSender) % stage.place.count)];
    std::deque<Sent>& from = sender.sent[turn.pass];
    if (from.empty()) return false;
    const auto [sent, when] = from.front();
    const int64_t before = stage.place.run(turn.own) + (turn.pass == Pass::kForward ? -1 : 1);
    if (sent.micro != turn.micro || sender.place.run(sent.own) != before)
      throw std::logic_error(fmt::format("stage {} of a pipeline is sent batch {} for batch {}",
                                         stage.place.index, sent.micro, turn.micro));
    from.pop_front();
    stage.time = std::max(stage.time, when);
    return true;
  }

  const TurnSeconds& seconds_;
  std::vector<Stage> stages_;
};

}  // namespace

ReplayedStep replayStep(const PipelineStage& any, int64_t micros, const TurnSeconds& seconds) {
  return Pipeline(any, micros, seconds).run();
}

ReplayedStep replayStep(const PipelineStage& any, int64_t micros,
                        std::span<const PassSeconds> runs) {
  const auto ofTurn = [&](int64_t stage, const Turn& turn) {
    const PassSeconds& run = runs[static_cast<size_t>(turn.own * any.count + stage)];
    return turn.pass == Pass::kForward ? run.forward : run.backward;
  };
  return replayStep(any, micros, ofTurn);
}

}  // namespace weft::train
