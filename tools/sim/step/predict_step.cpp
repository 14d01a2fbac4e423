// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/step/predict_step.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "tools/sim/planned.h"

namespace weft::simulator {
namespace {

constexpr std::uint32_t kSteps = 3;  // the last of them is in the middle of training
using Clock = std::chrono::steady_clock;

// The communicators of the job: one for all groups whose members are spread over nodes alike.
class Communicators {
 public:
  Communicators(const Place& place, const Cluster& cluster) : place_(place), cluster_(cluster) {}

  tools::Job& of(const sim::Groups& groups, std::uint32_t rank) {
    const std::vector<std::uint32_t> members = membersOf(groups, rank);
    std::unique_ptr<tools::Job>& job = jobs_[spreadOf(members)];
    if (!job) job = makeJob(place_, cluster_, members);
    return *job;
  }

 private:
  std::vector<std::uint32_t> membersOf(const sim::Groups& groups, std::uint32_t rank) const {
    std::vector<std::uint32_t> members;
    const std::uint32_t size = groups.size == 0 ? cluster_.network.ranks() : groups.size;
    for (std::uint32_t m = 0; m < size; ++m) members.push_back(groups.rankOf(rank, m));
    return members;
  }
  // Each member's node, where nodes are numbered as they come, and its place there.
  using Spread = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  Spread spreadOf(const std::vector<std::uint32_t>& members) const {
    std::map<std::uint32_t, std::uint32_t> nodes;
    Spread spread;
    for (const std::uint32_t rank : members) {
      const auto next = static_cast<std::uint32_t>(nodes.size());
      const auto node = nodes.try_emplace(cluster_.network.nodeOf(rank), next).first->second;
      spread.emplace_back(node, place_.numaNodes > 1 ? cluster_.network.localRankOf(rank) : 0);
    }
    return spread;
  }

  const Place& place_;
  const Cluster& cluster_;
  std::map<Spread, std::unique_ptr<tools::Job>> jobs_;
};

// A call of all groups: decided on once for each communicator.
class GroupCall {
 public:
  GroupCall(Communicators& communicators, const StepCall& what, const StepRun& run)
      : communicators_(communicators), what_(what), run_(run) {
    what_.call.algorithm = run.algorithm;
  }

  Status plan(std::uint32_t rank, std::string* tooLarge, std::unique_ptr<const plan::Plan>* out) {
    tools::Job& job = communicators_.of(what_.groups, rank);
    std::unique_ptr<Planned>& planned = planned_[&job];
    if (!planned) {
      planned = std::make_unique<Planned>(job, what_.call, run_.ownBuffers);
      WEFT_TRY(planned->decide(tooLarge));
    }
    return planned->bind(what_.groups.positionOf(rank), nullptr, out);
  }

  sim::Job simulated(std::string* tooLarge) {
    tools::Job& first = communicators_.of(what_.groups, 0);
    sim::Job job;
    job.plan = [this, tooLarge](std::uint32_t rank, std::unique_ptr<const plan::Plan>* out) {
      return plan(rank, tooLarge, out);
    };
    job.regions = [&first](bool inRing) { return first.regionsOf(inRing); };
    job.costs = &first.tuning().costs;
    job.sharesBuffers = run_.ownBuffers;
    job.groups = what_.groups;
    return job;
  }

 private:
  Communicators& communicators_;
  StepCall what_;
  const StepRun& run_;
  std::map<const tools::Job*, std::unique_ptr<Planned>> planned_;
};

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
  for (const StepCall& call : row->phases.calls) {
    calls.push_back(std::make_unique<GroupCall>(communicators, call, run));
    workload.calls.push_back(calls.back()->simulated(&row->tooLarge));
  }
  workload.roles = {row->phases.phases};
  for (const sim::Phase& phase : row->phases.phases)
    row->calls += phase.call == sim::Phase::kComputes ? 0 : 1;
  const bool sharesCores = place.coresOfNode < cluster.network.fabric().mostRanksOfANode();
  const sim::Setting setting{.network = &cluster.network,
                             .messageNs = place.messageNs,
                             .coresOfNode = sharesCores ? place.coresOfNode : 0,
                             .computesOnCores = run.computesOnCores,
                             .stragglers = place.stragglers,
                             .folds = run.folds,
                             .evens = run.folds && !run.exact};
  WEFT_TRY(sim::simulate(workload, setting, &row->result));
  for (const std::vector<sim::Interval>& times : row->result.phases)
    measure(row->phases, times, row);
  row->seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return {};
}

}  // namespace weft::simulator
