// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/engine_simulation.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>

#include "base/text.h"
#include "engine/executor.h"
#include "tests/simulation/caller.h"
#include "tests/simulation/network.h"

namespace weft::simulation {
namespace {

// A call returns by its deadline, and what the watch takes to find and tell the reason.
constexpr Time kPatience = 1100 * kMillisecond;

// What the seed decides beforehand.
struct Script {
  Setting setting;
  Weather weather;
  engine::WaitTuning waiting;
  std::uint64_t epochsBefore = 0;
  int timeoutMs = 0;
  struct Step {
    const SimulatedCall* call = nullptr;
    std::uint64_t salt = 0;
    std::uint32_t inPlace = 0;  // a bit for each rank
    std::uint32_t stray = ~0u;  // the rank that makes another call
    const SimulatedCall* other = nullptr;

    const SimulatedCall& of(std::uint32_t rank) const { return rank == stray ? *other : *call; }
  };
  std::vector<Step> steps;
};

Script writeScript(Random& random) {
  Script script;
  script.setting.ranks = 2 + static_cast<std::uint32_t>(random.below(3));
  script.setting.direct = random.chance(30);
  script.setting.shares = random.chance(20);
  script.setting.cramped = random.chance(30);
  script.weather = {.polls = random.chance(60),
                    .direct = script.setting.direct,
                    .shares = script.setting.shares,
                    .copies = random.chance(20)};
  script.setting.rings = !script.weather.polls && random.chance(70);
  script.weather.usual = random.oneOf<Time>({1, 5, 20}) * kMicrosecond;
  script.weather.longest = random.oneOf<Time>({20, 200, 1000}) * kMicrosecond;
  if (random.chance(10)) script.weather.clogged = random.between(2, 40) * kMillisecond;
  script.waiting.eager = random.oneOf<std::uint32_t>({0, 2});
  script.waiting.spins = script.waiting.eager + random.oneOf<std::uint32_t>({0, 3});
  script.waiting.respins = std::min(script.waiting.spins, 1u);
  script.waiting.crowded = random.chance(50);
  script.waiting.yieldFor = std::chrono::microseconds(random.oneOf({0, 50, 500}));
  script.waiting.uninterrupted = script.weather.longestCopy =
      random.oneOf<std::uint64_t>({64, 256, 4096});
  script.epochsBefore =
      random.oneOf<std::uint64_t>({0, 0, (1u << 27) - 3, (1u << 28) - 2, 1ull << 40});
  script.timeoutMs = random.oneOf({400, 1000});
  const std::uint64_t calls = 1 + random.below(4);
  for (std::uint64_t i = 0; i < calls; ++i) {
    Script::Step step{&randomCall(script.setting, random), random.next() & 0xffffff};
    if (i != 0 && random.chance(30)) step.call = script.steps[i - 1].call;
    step.inPlace = static_cast<std::uint32_t>(random.below(16));
    script.steps.push_back(step);
  }
  return script;
}

// All ranks, what they do and what is done to them.
class EngineWorld {
 public:
  explicit EngineWorld(std::uint64_t seed)
      : scheduler_(seed),
        script_(writeScript(scheduler_.random())),
        layout_(script_.setting.layout()) {
    descriptors().clear();
    layout_.epochsBefore = script_.epochsBefore;
    network_ = std::make_unique<Network>(scheduler_, layout_, script_.weather);
    for (std::uint32_t r = 0; r < layout_.ranks; ++r)
      names_.push_back({static_cast<int>(r), "h", 1000 + static_cast<int>(r)});
    ranks_.resize(layout_.ranks);
    for (std::uint32_t r = 0; r < layout_.ranks; ++r) {
      ranks_[r].fiber = scheduler_.spawn([this, r] { live(r); }, r);
      network_->serve(r, ranks_[r].fiber);
    }
    doHarm();
  }

  Outcome run() {
    const Time allowed = static_cast<Time>(script_.steps.size() + 2) *
                         (script_.timeoutMs * kMillisecond + kPatience);
    if (!scheduler_.run(scheduler_.now() + allowed)) blame("somebody hangs");
    judge();
    outcome_.trace = scheduler_.trace();
    dismissTheDead();
    outcome_.story = story();
    return outcome_;
  }

 private:
  struct Rank {
    Scheduler::FiberId fiber = 0;
    watch::Watch* watch = nullptr;  // while it lives
    std::uint32_t done = 0;         // calls that succeeded
    Status error;
    Time stoppedFor = 0;
    bool aborting = false;  // by another thread
    std::deque<Buffers> buffers;
  };

  void live(std::uint32_t rank);
  Status call(std::uint32_t rank, engine::Executor& executor, watch::Watch& watch,
              const Script::Step& step);
  void doHarm();
  void harm(std::uint32_t kind);
  void stray(std::uint32_t victim);
  void judge();
  void judgeStrays();
  void judgeVerdict();
  void judgeCulprit(const Status& error);
  void dismissTheDead();
  std::string story() const;
  void blame(const std::string& what) {
    if (outcome_.fault.empty()) outcome_.fault = what;
  }
  std::uint32_t anyRank() {
    return static_cast<std::uint32_t>(scheduler_.random().below(layout_.ranks));
  }

  Scheduler scheduler_;
  Script script_;
  transport::WindowLayout layout_;
  std::unique_ptr<Network> network_;
  std::vector<PeerName> names_;
  std::vector<Rank> ranks_;
  std::set<int> harmed_;    // ranks that an error may name
  bool mayBeLate_ = false;  // by what the seed does; all else is noticed before a deadline
  std::vector<std::string> harms_;
  Outcome outcome_;
};

void EngineWorld::live(std::uint32_t rank) {
  Rank& self = ranks_[rank];
  watch::Watch watch(network_->transport(rank), rank, names_, "w");
  engine::Executor executor(network_->transport(rank), watch, rank, script_.waiting);
  self.watch = &watch;
  for (const Script::Step& step : script_.steps) {
    if (scheduler_.random().chance(30))
      scheduler_.sleepUntil(scheduler_.now() + scheduler_.random().between(0, 2 * kMillisecond));
    self.error = watch.firstError();
    if (self.error.ok()) self.error = call(rank, executor, watch, step);
    if (!self.error.ok()) break;
    ++self.done;
  }
  if (self.error.ok()) self.error = watch.finish(script_.timeoutMs);
  watch::leaveForGood(network_->transport(rank), nullptr);
  self.watch = nullptr;
  while (self.aborting) scheduler_.sleepUntil(scheduler_.now() + kMillisecond);
}

Status EngineWorld::call(std::uint32_t rank, engine::Executor& executor, watch::Watch& watch,
                         const Script::Step& step) {
  Rank& self = ranks_[rank];
  Buffers& buffers =
      self.buffers.emplace_back(step.of(rank), rank, step.salt, (step.inPlace >> rank & 1) != 0);
  const Time start = scheduler_.now();
  const engine::Launch launch = buffers.launch();
  watch.enter(*launch.plan, script_.timeoutMs, nullptr);
  Status status = watch.firstError();
  if (status.ok()) status = executor.run(launch);
  status = watch.settle(status);
  if (network_->isDead(rank)) return status;
  const Time took = scheduler_.now() - start - self.stoppedFor;
  if (took > script_.timeoutMs * kMillisecond + kPatience)
    blame(text("rank ", rank, " returned ", took / kMillisecond, " ms after it was called"));
  if (const std::string wrong = buffers.takeBack(status.ok()); !wrong.empty())
    blame(text("rank ", rank, ", call ", self.done + 1, " (", step.call->text(), "): ", wrong));
  return status;
}

void EngineWorld::doHarm() {
  if (!scheduler_.random().chance(60)) return;
  outcome_.harmed = true;
  do {
    harm(static_cast<std::uint32_t>(scheduler_.random().below(11)));
  } while (scheduler_.random().chance(20));
}

// It calls something else, once.
void EngineWorld::stray(std::uint32_t victim) {
  Script::Step& step = script_.steps[scheduler_.random().below(script_.steps.size())];
  const SimulatedCall& other = randomCall(script_.setting, scheduler_.random());
  if (step.other || other.plans[0]->fingerprint == step.call->plans[0]->fingerprint) return;
  step.stray = victim;
  step.other = &other;
  network_->disagree();
  harms_.push_back(text("rank ", victim, " makes another call: ", other.text()));
}

void EngineWorld::harm(std::uint32_t kind) {
  const std::uint32_t victim = anyRank();
  const auto steps = static_cast<std::uint32_t>(
      1 + scheduler_.random().below(scheduler_.random().oneOf<std::uint64_t>({8, 30, 100})));
  harmed_.insert(static_cast<int>(victim));
  if (kind == 10) {
    stray(victim);
  } else if (kind < 5) {
    harms_.push_back(text("rank ", victim, " dies at step ", steps));
    scheduler_.afterSteps(ranks_[victim].fiber, steps, [this, victim] { network_->kill(victim); });
  } else if (kind < 7) {
    mayBeLate_ = true;
    const Time span = scheduler_.random().between(1, 3000) * kMillisecond;
    harms_.push_back(
        text("rank ", victim, " stops at step ", steps, " for ", span / kMillisecond, " ms"));
    scheduler_.afterSteps(ranks_[victim].fiber, steps, [this, victim, span] {
      ranks_[victim].stoppedFor += span;
      scheduler_.freeze(victim, scheduler_.now() + span);
    });
  } else if (kind < 9) {
    const std::uint32_t other =
        (victim + 1 + static_cast<std::uint32_t>(scheduler_.random().below(layout_.ranks - 1))) %
        layout_.ranks;
    const bool bothWays = scheduler_.random().chance(50);
    harmed_.insert(static_cast<int>(other));
    harms_.push_back(
        text("the link ", victim, bothWays ? " <-> " : " -> ", other, " is cut at step ", steps));
    scheduler_.afterSteps(ranks_[victim].fiber, steps, [this, victim, other, bothWays] {
      network_->cut(victim, other);
      if (bothWays) network_->cut(other, victim);
    });
  } else {
    harms_.push_back(text("rank ", victim, " aborts at step ", steps));
    scheduler_.afterSteps(ranks_[victim].fiber, steps, [this, victim] {
      scheduler_.spawn(
          [this, victim] {
            Rank& rank = ranks_[victim];
            if (rank.watch == nullptr) return;
            rank.aborting = true;
            (void)rank.watch->abort();
            rank.aborting = false;
          },
          victim);
    });
  }
}

void EngineWorld::judge() {
  if (const std::string& what = network_->violation(); !what.empty()) blame(what);
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)
    for (const Buffers& buffers : ranks_[r].buffers)
      if (!network_->isDead(r) || &buffers != &ranks_[r].buffers.back())
        if (const std::string wrong = buffers.check(); !wrong.empty())
          blame(
              text("rank ", r, ", call ", &buffers - &ranks_[r].buffers.front() + 1, ": ", wrong));
  judgeStrays();
  judgeVerdict();
}

// A call that not all have made alike succeeds nowhere, but where a rank need not wait for the
// others: that hears of it later.
void EngineWorld::judgeStrays() {
  for (std::uint32_t i = 0; i < script_.steps.size(); ++i)
    for (std::uint32_t r = 0; script_.steps[i].other && r < ranks_.size(); ++r)
      if ((ranks_[r].error.ok() && !network_->isDead(r)) ||
          (ranks_[r].done > i && !schedule::isRooted(script_.steps[i].of(r).collective)))
        blame(text("rank ", r, " succeeded in call ", i + 1, ", of which rank ",
                   script_.steps[i].stray, " made another"));
}

// One first error, and nobody gets further than one call beyond whoever failed first, and what
// follows that without waiting for all.
void EngineWorld::judgeVerdict() {
  const Status* first = nullptr;
  std::uint32_t least = static_cast<std::uint32_t>(script_.steps.size());
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    if (network_->isDead(r)) continue;
    const Rank& rank = ranks_[r];
    if (rank.error.ok()) continue;
    ++outcome_.failed;
    least = std::min(least, rank.done);
    if (first && first->text() != rank.error.text())
      blame(text("two verdicts: \"", first->text(), "\" and \"", rank.error.text(), "\""));
    first = &rank.error;
  }
  if (first == nullptr) return;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)
    for (std::uint32_t i = least + 1; !network_->isDead(r) && i < ranks_[r].done; ++i)
      if (!schedule::isRooted(script_.steps[i].of(r).collective))
        blame(text("rank ", r, " succeeded in call ", i + 1, "; one failed in ", least + 1));
  judgeCulprit(*first);
}

void EngineWorld::judgeCulprit(const Status& error) {
  if (harmed_.empty()) return blame("an error without a harm: " + error.text());
  // Who holds up a call is a guess by what the others show of themselves; all else is knowledge.
  if (error.code() == Code::Timeout) {
    if (!mayBeLate_) blame("not noticed before the deadline: " + error.text());
    return;
  }
  // Of two, or of calls that differ in what has no words, nobody knows which is wrong.
  if (error.code() == Code::Mismatch && error.data().who.rank == -1) return;
  if (!harmed_.contains(error.data().who.rank)) blame("an innocent is named: " + error.text());
}

void EngineWorld::dismissTheDead() {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    if (!network_->isDead(r)) continue;
    network_->dismiss(r);
    scheduler_.freeze(r, 0);
  }
  if (!scheduler_.run(scheduler_.now() + 20 * (script_.timeoutMs * kMillisecond + kPatience)))
    blame("somebody hangs who is alone");
}

std::string EngineWorld::story() const {
  std::string lines =
      text(layout_.ranks, " ranks", script_.weather.polls ? ", polled" : "",
           script_.setting.direct ? ", direct" : "", script_.setting.shares ? ", shared" : "",
           script_.setting.rings ? ", rings" : "", ", epochs from ", script_.epochsBefore,
           ", timeout ", script_.timeoutMs, " ms");
  for (const Script::Step& step : script_.steps) lines += "\n  " + step.call->text();
  for (const std::string& one : harms_) lines += "\n  " + one;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)
    lines += text("\n  rank ", r, network_->isDead(r) ? " (dead)" : "", ": ", ranks_[r].done,
                  " calls, ", ranks_[r].error.ok() ? "OK" : ranks_[r].error.text());
  return lines;
}

}  // namespace

Outcome simulateEngine(std::uint64_t seed) { return EngineWorld(seed).run(); }

}  // namespace weft::simulation
