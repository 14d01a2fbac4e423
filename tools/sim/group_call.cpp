// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/group_call.h"

namespace weft::simulator {

tools::Job& Communicators::of(const sim::Groups& groups, std::uint32_t rank) {
  const std::vector<std::uint32_t> members = membersOf(groups, rank);
  std::unique_ptr<tools::Job>& job = jobs_[spreadOf(members)];
  if (!job) job = makeJob(place_, cluster_, members);
  return *job;
}

std::vector<std::uint32_t> Communicators::membersOf(const sim::Groups& groups,
                                                    std::uint32_t rank) const {
  std::vector<std::uint32_t> members;
  const std::uint32_t size = groups.size == 0 ? cluster_.network.ranks() : groups.size;
  for (std::uint32_t m = 0; m < size; ++m) members.push_back(groups.rankOf(rank, m));
  return members;
}

Communicators::Spread Communicators::spreadOf(const std::vector<std::uint32_t>& members) const {
  std::map<std::uint32_t, std::uint32_t> nodes;
  Spread spread;
  for (const std::uint32_t rank : members) {
    const auto next = static_cast<std::uint32_t>(nodes.size());
    const auto node = nodes.try_emplace(cluster_.network.nodeOf(rank), next).first->second;
    spread.emplace_back(node, place_.numaNodes > 1 ? cluster_.network.localRankOf(rank) : 0);
  }
  return spread;
}

Status GroupCall::plan(std::uint32_t rank, std::unique_ptr<const plan::Plan>* out) {
  tools::Job& job = communicators_.of(groups_, rank);
  std::unique_ptr<Planned>& planned = planned_[&job];
  if (!planned) {
    planned = std::make_unique<Planned>(job, call_, ownBuffers_);
    WEFT_TRY(planned->decide(&tooLarge_));
  }
  return planned->bind(groups_.positionOf(rank), nullptr, out);
}

sim::Job GroupCall::simulated() {
  tools::Job& first = communicators_.of(groups_, 0);
  sim::Job job;
  job.plan = [this](std::uint32_t rank, std::unique_ptr<const plan::Plan>* out) {
    return plan(rank, out);
  };
  job.regions = [&first](bool inRing) { return first.regionsOf(inRing); };
  job.costs = &first.tuning().costs;
  job.sharesBuffers = ownBuffers_;
  job.groups = groups_;
  return job;
}

Status GroupCall::nameAlgorithm(std::string* name) {
  std::unique_ptr<const plan::Plan> bound;
  WEFT_TRY(plan(0, &bound));
  *name = bound->algorithm;
  return {};
}

}  // namespace weft::simulator
