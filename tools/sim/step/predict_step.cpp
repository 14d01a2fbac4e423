// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/step/predict_step.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "tools/sim/group_call.h"

namespace weft::simulator {
namespace {

constexpr std::uint32_t kSteps = 2;  // the second one begins as all later ones do
using Clock = std::chrono::steady_clock;

// A short call, as those for the gradients' norm and for a bucket of biases, may take a form that is
// not the same after a shift, and then the whole step would be simulated rank by rank, for some
// microseconds of it. It takes one that is, where ranks of several nodes make it.
const char* shortForm(const StepCall& step, const sim::Network& network) {
  constexpr std::uint64_t kShortBytes = 64 << 10;
  const std::uint32_t inNode = network.mostRanksOfANode();
  const std::uint32_t ranks = step.groups.size == 0 ? network.ranks() : step.groups.size;
  const bool isOnNodes = step.groups.stride * ranks > inNode;
  if (!isOnNodes || step.call.count * reduce::sizeOf(step.call.type) > kShortBytes) return "";
  return step.groups.stride == 1 && inNode > 1 ? "two-level" : "mesh";
}

// What the caller of a rank did between the ends of the last two steps.
void measure(const StepPhases& phases, const std::vector<sim::Interval>& times, StepRow* row) {
  const std::uint32_t from = phases.ends[kSteps - 2], to = phases.ends[kSteps - 1];
  const double ns = sim::nsOf(times[to].end - times[from].end);
  if (ns <= row->stepNs) return;
  row->stepNs = ns;
  row->computeNs = row->tensorNs = 0;
  for (std::uint32_t i = from + 1; i <= to; ++i) {
    if (phases.phases[i].stream != kCaller) continue;
    const double took = sim::nsOf(times[i].end - times[i].begin);
    (phases.phases[i].call == sim::Phase::kComputes ? row->computeNs : row->tensorNs) += took;
  }
}

}  // namespace

Status predictStep(const Place& place, const Cluster& cluster, const StepModel& model,
                   const StepSettings& settings, const StepRun& run, StepRow* row) {
  const auto start = Clock::now();
  *row = {};
  row->nodes = cluster.network.nodes();
  row->ranks = cluster.network.ranks();
  WEFT_TRY(makePhases(model, settings, row->ranks, kSteps, &row->phases));
  row->buckets = row->phases.buckets;
  row->sentBytes = row->phases.sentBytes;
  Communicators communicators(place, cluster);
  std::vector<std::unique_ptr<GroupCall>> calls;
  sim::Workload workload;
  for (const StepCall& step : row->phases.calls) {
    plan::Call call = step.call;
    call.algorithm = run.algorithm;
    if (run.folds && run.algorithm.empty()) call.algorithm = shortForm(step, cluster.network);
    calls.push_back(std::make_unique<GroupCall>(communicators, step.groups, call, run.ownBuffers));
    workload.calls.push_back(calls.back()->simulated());
  }
  workload.roles = {row->phases.phases};
  for (const sim::Phase& phase : row->phases.phases)
    row->calls += phase.call == sim::Phase::kComputes ? 0 : 1;
  const bool sharesCores = place.coresOfNode < cluster.network.mostRanksOfANode();
  const sim::Setting setting{.network = &cluster.network,
                             .messageNs = place.messageNs,
                             .coresOfNode = sharesCores ? place.coresOfNode : 0,
                             .computesOnCores = run.computesOnCores,
                             .stragglers = place.stragglers,
                             .folds = run.folds,
                             .evens = run.folds && !run.exact};
  WEFT_TRY(sim::simulate(workload, setting, &row->result));
  for (const std::unique_ptr<GroupCall>& call : calls) {
    std::string algorithm;
    WEFT_TRY(call->nameAlgorithm(&algorithm));
    row->algorithms.insert(algorithm);
    if (row->tooLarge.empty()) row->tooLarge = call->tooLarge();
  }
  for (const std::vector<sim::Interval>& times : row->result.phases)
    measure(row->phases, times, row);
  row->seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return {};
}

}  // namespace weft::simulator
