// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "plan/call.h"
#include "sim/groups.h"
#include "sim/job.h"
#include "tools/sim/cluster.h"
#include "tools/sim/options.h"
#include "tools/sim/planned.h"

namespace weft::simulator {

// The communicators of a job: one for all groups whose members are spread over nodes alike.
class Communicators {
 public:
  // Both outlive it.
  Communicators(const Place& place, const Cluster& cluster) : place_(place), cluster_(cluster) {}

  // Of the rank's group.
  tools::Job& of(const sim::Groups& groups, std::uint32_t rank);

 private:
  std::vector<std::uint32_t> membersOf(const sim::Groups& groups, std::uint32_t rank) const;
  // Each member's node, where nodes are numbered as they come, and its place there.
  using Spread = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  Spread spreadOf(const std::vector<std::uint32_t>& members) const;

  const Place& place_;
  const Cluster& cluster_;
  std::map<Spread, std::unique_ptr<tools::Job>> jobs_;
};

// A call of all groups: decided on once for each communicator.
class GroupCall {
 public:
  // The communicators outlive it.
  GroupCall(Communicators& communicators, const sim::Groups& groups, const plan::Call& call,
            bool ownBuffers)
      : communicators_(communicators), groups_(groups), call_(call), ownBuffers_(ownBuffers) {}
  GroupCall(const GroupCall&) = delete;

  // For the simulator; it lives as long as this.
  sim::Job simulated();
  // Which algorithm rank 0's group takes.
  Status nameAlgorithm(std::string* name);
  // Why there could be no such communicator today; else empty.
  const std::string& tooLarge() const { return tooLarge_; }

 private:
  Status plan(std::uint32_t rank, std::unique_ptr<const plan::Plan>* out);

  Communicators& communicators_;
  const sim::Groups groups_;
  const plan::Call call_;
  const bool ownBuffers_;
  std::string tooLarge_;
  std::map<const tools::Job*, std::unique_ptr<Planned>> planned_;
};

}  // namespace weft::simulator
