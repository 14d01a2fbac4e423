// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "../plan/sample_machine.h"
#include "plan/cache.h"
#include "plan/decide.h"
#include "sim/ideal_machine.h"
#include "sim/job.h"
#include "sim/network.h"
#include "topology/fabric_file.h"

namespace weft::sim {

inline topology::Fabric fabricOf(const std::string& lines) {
  topology::Fabric fabric;
  const Status read = topology::parseFabric("weft-topology 1\n" + lines, "test.topo", &fabric);
  EXPECT_TRUE(read.ok()) << read.text();
  return fabric;
}

inline Network networkOf(const std::string& lines, const std::vector<Change>& changes = {},
                         double memory = 0) {
  Network network;
  const Status made = Network::make(fabricOf(lines), changes, memory, &network);
  EXPECT_TRUE(made.ok()) << made.text();
  return network;
}

// A call of the ranks of a fabric, as they would plan it.
class FabricJob {
 public:
  using Mutate = std::function<void(std::uint32_t rank, plan::Plan*)>;

  FabricJob(Network network, const tune::Machine& machine)
      : network_(std::move(network)), tuning_(plan::hosts(network_.ranks(), 1)) {
    tuning_.nodes = network_.nodesOfRanks();
    tuning_.costs.machine = machine;
    tuning_.costs.between.reset();
    if (network_.nodes() > 1) tuning_.costs.between = plan::Between{tuning_.nodes};
    setting_.network = &network_;
    setting_.messageNs = 0;
  }
  FabricJob(const FabricJob&) = delete;

  Setting& setting() { return setting_; }
  plan::Tuning& tuning() { return tuning_; }
  const Network& network() const { return network_; }

  Status run(const plan::Call& call, Result* result, const Mutate& mutate = nullptr,
             std::size_t times = 1) {
    plan::Decision decision;
    WEFT_TRY(plan::decide(call, tuning_, &decision));
    Job job;
    job.plan = [&](std::uint32_t rank, std::unique_ptr<const plan::Plan>* out) -> Status {
      std::unique_ptr<plan::Plan> plan;
      WEFT_TRY(plan::bindDecision(decision, call, tuning_, plan::targetOf(tuning_, rank), &plan));
      if (mutate) mutate(rank, plan.get());
      *out = std::move(plan);
      return {};
    };
    job.regions = [&](bool inRing) { return plan::targetOf(tuning_).regions(inRing); };
    job.costs = &tuning_.costs;
    Workload workload;
    workload.calls.push_back(std::move(job));
    workload.roles = {std::vector<Phase>(times, {.name = "call", .call = 0})};
    return simulate(workload, setting_, result);
  }
  double ns(const plan::Call& call, std::size_t times = 1) {
    Result result;
    const Status done = run(call, &result, nullptr, times);
    EXPECT_TRUE(done.ok()) << done.text();
    return result.ns;
  }

 private:
  const Network network_;
  plan::Tuning tuning_;
  Setting setting_;
};

inline plan::Call callOf(schedule::Collective collective, std::uint64_t count,
                         std::string_view algorithm) {
  plan::Call call = plan::callOf(collective, count);
  call.algorithm = algorithm;
  return call;
}

}  // namespace weft::sim
