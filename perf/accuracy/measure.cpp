// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/measure.h"

#include <fmt/format.h>
#include <sched.h>
#include <weft/weft.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <stdexcept>

#include "api/entry.h"
#include "base/now.h"
#include "perf/accuracy/buffers.h"
#include "perf/accuracy/comm.h"
#include "perf/accuracy/look.h"
#include "perf/accuracy/predict.h"
#include "perf/common/median.h"
#include "plan/plan_hash.h"
#include "plan/trial.h"
#include "tune/this_machine.h"

namespace weft::accuracy {
namespace {

constexpr double kSteadyNs = 300e3;  // that a turn's calls last at least, if they are short
constexpr double kFreshNs = 200e3;
constexpr std::uint32_t kMostCalls = 4096, kMostFresh = 12;
constexpr double kHopeless =
    3;  // times as long as the best in the first calls: not measured further
constexpr double kCheapNs = 60e6;  // a visit that lasts no longer takes more turns
constexpr std::size_t kTurns = 3, kTurnsOfCheap = 6;
constexpr double kStateNs = 1e9;      // until the machine is measured again
constexpr double kPatienceNs = 30e9;  // beyond the time given, until a first turn counts

// One rank a core, as far as there are some.
void pin(int rank) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int skip = rank % std::max(1, CPU_COUNT(&allowed));
  CPU_ZERO(&one);
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed) && skip-- == 0) CPU_SET(core, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) throw std::runtime_error("cannot pin a rank");
}

// A form while it is measured.
struct Contender {
  Form form;
  weftOpts_t options = WEFT_OPTS_INITIALIZER;
  std::uint32_t calls = 1;  // of a turn
  bool isMeasured = true;

  explicit Contender(std::string name) : form{std::move(name), {}, 0} {}
  const weftOpts_t* opts() {
    options.algorithm = form.name.empty() ? nullptr : form.name.c_str();
    return &options;
  }
};

struct Spot {
  Point point;
  perf::Problem problem;
  std::vector<Contender> contenders;
  bool isKnown = false;  // the first calls have been made
  std::size_t turns = kTurns;
  std::vector<std::uint32_t> states = {};  // by turn that has been measured
};

// What this rank has measured and the others are to hear: begin and end, one pair after the other.
using Times = std::vector<double>;

// All ranks do the same, as what they decide by is what all have gathered.
class Visitor {
 public:
  Visitor(const Task& task, double begin)
      : task_(task),
        begin_(begin),
        control_(Comm::join()),
        any_(control_->copy()),
        own_(control_->copy()) {
    rank_ = control_->rank();
    ranks_ = static_cast<std::uint32_t>(control_->size());
    world_.ranks = ranks_;
    learn();
    look_ = std::make_unique<Look>(*control_, world_.tuning.costs.cores);
    pin(rank_);
    const std::size_t most = std::ranges::max(task.sweep.sizes);
    const std::size_t room = std::max(most, sizeof(float) * ranks_);
    for (const bool own : task.sweep.own)
      (own ? ownBuffers_ : anyBuffers_) = std::make_unique<Buffers>(room, own);
    check(Predictor::make(world_, &predictor_));
    for (const Point& point : inOrder(task.sweep)) spots_.push_back(spotOf(point));
  }

  World run() {
    control_->barrier();
    world_.planned = spots_.size();
    for (bool goesOn = true; goesOn;)
      for (Spot& spot : spots_)
        if (goesOn) goesOn = visit(spot);
    for (Spot& spot : spots_)
      if (spot.isKnown && !spot.contenders[0].form.turns.empty()) tell(spot);
    world_.seconds = (nowNs() - begin_) / 1e9;
    control_->barrier();
    return std::move(world_);
  }

 private:
  // What the ranks have agreed on.
  void learn() {
    std::shared_ptr<comm::Communicator> shared;
    check(api::shareComm(any_->get(), &shared));
    const comm::Core::Parts& parts = shared->core()->parts;
    world_.tuning = parts.tuning;
    world_.calibration = tune::describe(parts.calibrated);
  }

  Spot spotOf(const Point& point) const {
    Spot spot{point, problemOf(point, rank_, static_cast<int>(ranks_)), {}};
    spot.contenders.emplace_back("");
    std::vector<std::string> names;
    check(formsOf(predictor_->job(), point, task_.all, &names));
    for (std::string& name : names) spot.contenders.emplace_back(std::move(name));
    return spot;
  }

  weftComm_t commOf(const Spot& spot) const { return (spot.point.own ? own_ : any_)->get(); }
  Buffers& buffersOf(const Spot& spot) const {
    return spot.point.own ? *ownBuffers_ : *anyBuffers_;
  }

  void call(const Spot& spot, Contender& contender) const {
    const Buffers& buffers = buffersOf(spot);
    const perf::Call call{buffers.in(), buffers.out(), weftSum,
                          commOf(spot), nullptr,       contender.opts()};
    check(spot.point.collective->call(spot.problem, call), commOf(spot));
  }

  // So many calls back to back.
  void timeSteady(const Spot& spot, Contender& contender, std::uint32_t calls, Times* times) const {
    control_->barrier();
    times->push_back(nowNs());
    for (std::uint32_t i = 0; i < calls; ++i) call(spot, contender);
    times->push_back(nowNs());
  }

  // Nobody uses what it has got while others of its core have yet to come to their end.
  void timeFresh(const Spot& spot, Contender& contender, std::uint32_t calls, Times* times) const {
    for (std::uint32_t i = 0; i < calls; ++i) {
      buffersOf(spot).use(spot.problem);
      timeSteady(spot, contender, 1, times);
      control_->barrier();
    }
  }

  bool isFresh(const Spot& spot) const { return spot.point.mode == Mode::Fresh; }
  // The pairs of times that a turn of it makes, and the calls of each.
  std::size_t pairsOf(const Spot& spot, std::uint32_t calls) const {
    return isFresh(spot) ? calls : 1;
  }
  void time(const Spot& spot, Contender& contender, std::uint32_t calls, Times* times) const {
    isFresh(spot) ? timeFresh(spot, contender, calls, times)
                  : timeSteady(spot, contender, calls, times);
  }

  // The nanoseconds a call of the pairs from `first` on, from the earliest begin to the latest end
  // over all ranks.
  double summed(const Times& all, const Spot& spot, std::size_t first, std::uint32_t calls) const {
    std::vector<double> spans;
    const std::size_t stride = all.size() / ranks_;
    for (std::size_t pair = 0; pair < pairsOf(spot, calls); ++pair) {
      double begin = std::numeric_limits<double>::max(), end = 0;
      for (std::size_t rank = 0; rank < ranks_; ++rank) {
        begin = std::min(begin, all[rank * stride + first + 2 * pair]);
        end = std::max(end, all[rank * stride + first + 2 * pair + 1]);
      }
      spans.push_back((end - begin) / (isFresh(spot) ? 1 : calls));
    }
    return tools::median(spans);
  }

  // As many calls as the first trial may take.
  void tryAll(Spot& spot) const {
    for (std::uint32_t i = 0; i < plan::Trial::kMost * plan::Trial::kRuns.all; ++i) {
      if (isFresh(spot)) buffersOf(spot).use(spot.problem);
      call(spot, spot.contenders[0]);
    }
  }

  // The first calls: they make the plans, find out whose buffers are shared, and tell how many
  // calls make a turn and which forms are hopeless.
  void probe(Spot& spot) {
    constexpr std::size_t kShort = 64 << 10, kLong = 4 << 20;
    const std::uint32_t calls = spot.point.bytes <= kShort ? 12 : 1;
    const std::size_t probes = spot.point.bytes <= kLong ? 2 : 1;
    Times times;
    if (task_.trials) tryAll(spot);
    for (Contender& contender : spot.contenders) {
      call(spot, contender);
      for (std::size_t i = 0; i < probes; ++i) time(spot, contender, calls, &times);
    }
    const Times all = control_->gather(times);
    std::size_t at = 0;
    double best = std::numeric_limits<double>::max();
    for (Contender& contender : spot.contenders) {
      contender.form.probeNs = std::numeric_limits<double>::max();
      for (std::size_t i = 0; i < probes; ++i, at += 2 * pairsOf(spot, calls))
        contender.form.probeNs = std::min(contender.form.probeNs, summed(all, spot, at, calls));
      best = std::min(best, contender.form.probeNs);
    }
    settle(spot, best);
  }

  void settle(Spot& spot, double best) const {
    double visit = 0;
    for (Contender& contender : spot.contenders) {
      const double ns = contender.form.probeNs;
      const double wanted = (isFresh(spot) ? kFreshNs : kSteadyNs) / std::max(ns, 1.0);
      const std::uint32_t most = isFresh(spot) ? kMostFresh : kMostCalls;
      contender.calls = static_cast<std::uint32_t>(std::clamp<double>(wanted, 1, most));
      contender.isMeasured = contender.form.name.empty() || ns <= kHopeless * best;
      if (contender.isMeasured) visit += ns * contender.calls * kTurnsOfCheap;
    }
    spot.turns = visit <= kCheapNs ? kTurnsOfCheap : kTurns;
    spot.isKnown = true;
  }

  // False: the time is over.
  bool visit(Spot& spot) {
    if (!spot.isKnown) probe(spot);
    if (world_.states.empty() || seenNs_ - lookedNs_ > kStateNs || isOld_) look();
    for (std::size_t turn = 0; turn < spot.turns && takeTurn(spot, turn); ++turn) {
    }
    ++visits_;
    counts_ |= !spot.states.empty();
    return seenNs_ < task_.seconds * 1e9 + (counts_ ? 0 : kPatienceNs);
  }

  void look() {
    world_.states.push_back(look_->take());
    lookedNs_ = seenNs_;
    isOld_ = false;
  }

  // Each form once. False, and it does not count, if the cores have moved meanwhile.
  bool takeTurn(Spot& spot, std::size_t turn) {
    Times times{nowNs() - begin_};
    std::vector<std::pair<Contender*, std::size_t>> order;  // and where its times begin
    for (std::size_t i = 0; i < spot.contenders.size(); ++i) {
      Contender& contender = spot.contenders[(i + visits_ + turn) % spot.contenders.size()];
      if (!contender.isMeasured) continue;
      order.emplace_back(&contender, times.size());
      time(spot, contender, contender.calls, &times);
    }
    const Times all = control_->gather(times);
    seenNs_ = all[0];
    isOld_ = look_->isOld();
    if (isOld_) return false;
    spot.states.push_back(static_cast<std::uint32_t>(world_.states.size() - 1));
    for (const auto& [contender, at] : order)
      contender->form.turns.push_back(summed(all, spot, at, contender->calls));
    return true;
  }

  void tell(Spot& spot) {
    if (rank_ != 0) return;
    std::shared_ptr<comm::Communicator> shared;
    check(api::shareComm(commOf(spot), &shared));
    const comm::Core::Parts& parts = shared->core()->parts;
    const plan::Call call = callOf(spot.point, ranks_);
    plan::Decision decision;
    std::unique_ptr<plan::Plan> plan;
    check(plan::decide(call, parts.tuning, &decision));
    check(plan::bindDecision(decision, call, parts.tuning, parts.target, &plan));
    const plan::Plan& runs = plan->otherwise && !spot.point.own ? *plan->otherwise : *plan;
    Measured measured{
        spot.point, runs.algorithm, plan::hashOfRun(runs, spot.point.own), {}, spot.states};
    for (Contender& contender : spot.contenders) measured.forms.push_back(contender.form);
    world_.points.push_back(std::move(measured));
  }

  const Task& task_;
  const double begin_;
  const std::unique_ptr<Comm> control_, any_, own_;
  std::unique_ptr<Look> look_;
  int rank_ = 0;
  std::uint32_t ranks_ = 1;
  World world_;
  std::unique_ptr<const Predictor> predictor_;
  std::unique_ptr<Buffers> anyBuffers_, ownBuffers_;
  std::vector<Spot> spots_;
  std::size_t visits_ = 0;
  bool counts_ = false;               // a turn has been measured
  bool isOld_ = false;                // the last look: the cores have moved since
  double seenNs_ = 0, lookedNs_ = 0;  // rank 0's time of the last visit, and of the last look
};

}  // namespace

World measureAsRank(const Task& task) {
  const double begin = nowNs();
  return Visitor(task, begin).run();
}

}  // namespace weft::accuracy
