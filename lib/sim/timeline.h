// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/calls.h"
#include "sim/cores.h"
#include "sim/job.h"

namespace weft::sim {

// A role as the timeline runs it: what a phase waits for, counted, and what waits for it.
struct Role {
  const std::vector<Phase>* phases = nullptr;
  std::vector<std::uint32_t> calls;                // by phase: which call of all, if it is one
  std::vector<std::uint32_t> waitsFor;             // by phase
  std::vector<std::vector<std::uint32_t>> before;  // by phase: those that it is waited for by
};

// The roles of a workload. `calls`: of each call its kind, the first ones of each kind being the first
// that ranks make of it.
Status makeRoles(const Workload& workload, std::vector<Role>* roles,
                 std::vector<std::uint32_t>* calls);
std::uint32_t streamsOf(const Workload& workload);

// Begins the phases of each rank when what they wait for has ended.
class Timeline {
 public:
  // All outlive it. `roleOf`: by rank.
  Timeline(const Setting& setting, const std::vector<Role>& roles,
           std::vector<std::uint32_t> roleOf, Cores& cores, Clock& clock, Calls& calls);

  void begin();
  void worked(std::uint32_t worker);
  // What follows from all that has happened. False: nothing.
  bool goOn();

  const std::vector<std::vector<Interval>>& phases() const { return times_; }
  // Why a rank has not come to its end, if one has not.
  Status checkThrough() const;

 private:
  const Role& roleOf(std::uint32_t rank) const { return roles_[roleOf_[rank]]; }
  const Phase& phaseOf(std::uint32_t rank, std::uint32_t phase) const {
    return (*roleOf(rank).phases)[phase];
  }
  void start(std::uint32_t rank, std::uint32_t phase);
  void end(std::uint32_t rank, std::uint32_t phase);

  struct Ready {
    std::uint32_t rank = 0, phase = 0;
  };

  const Setting& setting_;
  const std::vector<Role>& roles_;
  const std::vector<std::uint32_t> roleOf_;
  Cores& cores_;
  Clock& clock_;
  Calls& calls_;
  std::vector<std::vector<std::uint32_t>> left_;  // by rank and phase: what it waits for
  std::vector<std::vector<Interval>> times_;
  std::vector<std::uint32_t> at_;  // by worker: the phase that it is in
  std::vector<Ready> ready_;
};

}  // namespace weft::sim
