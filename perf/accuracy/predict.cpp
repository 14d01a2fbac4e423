// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/predict.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <utility>

#include "perf/common/median.h"
#include "plan/candidate.h"
#include "plan/plan_hash.h"
#include "schedule/registry.h"
#include "sim/time.h"

namespace weft::accuracy {
namespace {

schedule::Collective collectiveOf(const perf::Collective& wanted) {
  for (int c = 0; c < static_cast<int>(schedule::Collective::Barrier); ++c)
    if (plan::collectiveName(static_cast<schedule::Collective>(c)) == wanted.name)
      return static_cast<schedule::Collective>(c);
  return schedule::Collective::Barrier;
}

// One host, whose ranks share memory. Its rates are the machine's, not those of a file.
topology::Fabric hostOf(std::uint32_t ranks) {
  topology::Fabric host;
  host.name = "this host";
  host.nodes = {{"host", ranks}};
  host.memory = topology::LinkSpeed{1000, 0};
  return host;
}

// Each rank enters the call and makes it, so often.
std::vector<sim::Phase> callsOf(std::size_t calls, double entryNs) {
  std::vector<sim::Phase> phases;
  for (std::size_t i = 0; i < calls; ++i) {
    phases.push_back({.name = "entry", .ns = entryNs});
    phases.push_back({.name = "call", .call = 0});
  }
  return phases;
}

// From when the first rank enters the last call until the last one returns.
double ofLastCall(const sim::Result& result) {
  sim::Time first = sim::kNever, last = 0;
  for (const std::vector<sim::Interval>& phases : result.phases) {
    first = std::min(first, phases[phases.size() - 2].begin);
    last = std::max(last, phases.back().end);
  }
  return sim::nsOf(last - first);
}

}  // namespace

plan::Call callOf(const Point& point, std::uint32_t ranks) {
  const perf::Problem problem = problemOf(point, 0, static_cast<int>(ranks));
  plan::Call call;
  call.collective = collectiveOf(*point.collective);
  call.type = reduce::DType::F32;
  call.count = problem.count;
  return call;
}

Status formsOf(const tools::Job& job, const Point& point, bool all,
               std::vector<std::string>* names) {
  const plan::Call call = callOf(point, job.ranks());
  plan::Decision decision;
  WEFT_TRY(job.decide(call, &decision));
  names->clear();
  for (const plan::Estimate& way : decision.estimates)
    if (!way.onlyShared || point.own) names->push_back(way.name);
  if (!all) return {};
  for (const plan::Candidate& way : plan::candidatesOf(call, job.tuning())) {
    const std::string name = plan::nameOf(way, call, job.tuning());
    const bool runs = !way.algorithm->shared || way.isDirect() || point.own;
    if (runs && std::ranges::find(*names, name) == names->end()) names->push_back(name);
  }
  return {};
}

Status Predictor::make(const World& world, std::unique_ptr<const Predictor>* out) {
  auto made = std::unique_ptr<Predictor>(new Predictor(world));
  WEFT_TRY(made->job_.fits());
  WEFT_TRY(sim::Network::make(hostOf(world.ranks), {}, 0, &made->network_));
  *out = std::move(made);
  return {};
}

// With buffers that are not shared the other plan runs, unless this one copies.
Status Predictor::bind(const Point& point, const plan::Call& call, const plan::Decision& decision,
                       std::uint32_t rank, std::unique_ptr<const plan::Plan>* out) const {
  std::unique_ptr<plan::Plan> plan;
  WEFT_TRY(job_.plan(call, decision, rank, &plan));
  if (plan->otherwise && !point.own)
    *out = std::move(plan->otherwise);
  else
    *out = std::move(plan);
  return {};
}

sim::Job Predictor::jobOf(const Point& point, const plan::Call& call,
                          const plan::Decision& decision, const plan::CostParameters& costs) const {
  return {.plan =
              [this, &point, &call, &decision](std::uint32_t rank,
                                               std::unique_ptr<const plan::Plan>* out) {
                return bind(point, call, decision, rank, out);
              },
          .regions = [this](bool inRing) { return job_.regionsOf(inRing); },
          .costs = &costs,
          .sharesBuffers = point.own,
          .resultsAreRead = point.mode == Mode::Fresh};
}

// As they are measured: after each call there is a barrier, and one before the next. Where ranks share
// cores they leave them one after the other, and which of them comes first follows from all before.
Status Predictor::simulateFresh(sim::Workload* workload, const sim::Setting& setting,
                                const Point& point, const plan::CostParameters& costs,
                                double entryNs, double* ns) const {
  constexpr std::size_t kPeriods = 3;  // until they repeat
  plan::Call barrier;
  barrier.collective = schedule::Collective::Barrier;
  plan::Decision decision;
  WEFT_TRY(job_.decide(barrier, &decision));
  workload->calls.push_back(jobOf(point, barrier, decision, costs));
  std::vector<sim::Phase> phases = callsOf(1, entryNs);
  for (std::size_t i = 0; i < kPeriods; ++i) {
    phases.insert(phases.end(), 2, {.name = "barrier", .call = 1});
    std::ranges::copy(callsOf(1, entryNs), std::back_inserter(phases));
  }
  workload->roles = {phases};
  sim::Result result;
  WEFT_TRY(sim::simulate(*workload, setting, &result));
  *ns = ofLastCall(result);
  return {};
}

// What one call more costs where some are under way.
Status Predictor::simulateSteady(sim::Workload* workload, const sim::Setting& setting,
                                 const Point& point, double entryNs, double* ns) const {
  constexpr std::size_t kShort = 64 << 10;
  const std::size_t first = point.bytes <= kShort ? 4 : 1, more = 2 * first;
  sim::Result begun, result;
  workload->roles = {callsOf(first, entryNs)};
  WEFT_TRY(sim::simulate(*workload, setting, &begun));
  workload->roles = {callsOf(first + more, entryNs)};
  WEFT_TRY(sim::simulate(*workload, setting, &result));
  *ns = (result.ns - begun.ns) / static_cast<double>(more);
  return {};
}

Status Predictor::simulate(const Point& point, const plan::Call& call,
                           const plan::Decision& decision, const State& state, double* ns) const {
  plan::CostParameters costs = job_.tuning().costs;
  costs.machine = tune::estimated(state.machine);
  sim::Setting setting;
  setting.network = &network_;
  setting.coresOfNode = costs.cores < world_.ranks ? costs.cores : 0;
  setting.computesOnCores = setting.coresOfNode != 0;
  sim::Workload workload;
  workload.calls.push_back(jobOf(point, call, decision, costs));
  if (point.mode == Mode::Fresh)
    return simulateFresh(&workload, setting, point, costs, state.entry.freshNs, ns);
  return simulateSteady(&workload, setting, point, state.entry.steadyNs, ns);
}

Status Predictor::forecast(const Measured& measured, const std::string& form, Forecast* out) const {
  plan::Call call = callOf(measured.point, world_.ranks);
  call.algorithm = form;
  plan::Decision decision;
  WEFT_TRY(job_.decide(call, &decision));
  std::unique_ptr<const plan::Plan> plan;
  WEFT_TRY(bind(measured.point, call, decision, 0, &plan));
  *out = {plan->algorithm, plan::hashOfRun(*plan, measured.point.own)};
  for (const plan::Estimate& way : decision.estimates)
    if (way.name == form) out->modelNs = way.ns;
  const auto last = static_cast<std::uint32_t>(world_.states.size() - 1);
  std::map<std::uint32_t, double> times;  // by state
  for (const std::uint32_t before : measured.states)
    for (const std::uint32_t state : {before, std::min(before + 1, last)})
      if (const auto [known, isNew] = times.try_emplace(state, 0); isNew)
        WEFT_TRY(simulate(measured.point, call, decision, world_.states[state], &known->second));
  for (const std::uint32_t before : measured.states) out->turns.push_back(times[before]);
  out->ns = tools::median(out->turns);
  const auto [least, most] = std::ranges::minmax(times | std::views::values);
  out->lowNs = least, out->highNs = most;
  return {};
}

}  // namespace weft::accuracy
