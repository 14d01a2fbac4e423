// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/cache_aligned.h"
#include "base/status.h"
#include "comm/transport_selection.h"
#include "engine/caller_team.h"
#include "engine/executor.h"
#include "engine/pairs.h"
#include "engine/team.h"
#include "engine/waiter.h"
#include "plan/cache.h"
#include "transports/transport.h"
#include "tune/expectation.h"
#include "tune/this_machine.h"
#include "watch/watch.h"

namespace weft::comm {

// What the creator of a communicator asks for: weftConfig_t with the knobs filled in.
struct CommConfig {
  int timeoutMs = 600000;
  int initTimeoutMs = 120000;
  std::string name;
  std::string transport = "auto";
  bool reproducible = false;
  int threads = 1;              // of a rank
  engine::Pool pool;            // the application's; else they are the team's own
  engine::Meanwhile meanwhile;  // while calls wait
  bool teamCalls = false;       // they are the application's, and make each call together
  // The rank's, once there is one: communicators that are split off inherit it.
  std::shared_ptr<engine::Team> team;
  engine::CallerTeam* callers = nullptr;  // that team, if they make the calls
  // For a communicator of the library's own: one thread makes its calls.
  void beCalledByOne() {
    if (callers == nullptr) return;
    teamCalls = false, threads = 1, team = nullptr, callers = nullptr;
  }
  std::uint64_t epochsBefore = 0;  // of tests, see WindowLayout
};

// The machinery of one rank's end of a communicator: what ends with a lost link, and is made anew
// to recover from it (comm/recover.h).
struct alignas(base::kCacheAligned) Core {
  // What a core is made from, and its successor after a lost link.
  struct Basis {
    std::uint32_t rank = 0;
    std::uint32_t ranks = 1;
    CommConfig config;
    std::vector<PeerName> names;
    TransportSelection selection;
    plan::Tuning tuning;
  };
  struct Parts : Basis {
    Parts() = default;
    Parts(Parts&&) = default;
    ~Parts();  // where no Core came of them, the others hear that this rank has left

    std::uint32_t localRank = 0, localRanks = 1;  // among those of this host
    std::unique_ptr<transport::Transport> transport;
    std::shared_ptr<watch::RemoteRanks> remoteRanks;  // null: all ranks share memory
    std::uint32_t coresHere = 1;                      // that this host's ranks have together
    engine::WaitTuning waiting;
    engine::Crew crew;
    std::uint32_t lanes = transport::kMaxLanes;
    tune::KnownMachine calibrated;  // rank 0's, from which tuning.costs.machine is
    plan::BindTarget target;
  };
  explicit Core(Parts made);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  Parts parts;
  watch::Watch watch;
  engine::Executor executor;
  engine::Pairs pairs;
  plan::PlanCache plans;
  tune::Expectation expectation;
  // Collectives up to this number have failed on a rank, and so fail on all.
  std::uint64_t failedUpTo = 0;
  Status failure;  // why
};

}  // namespace weft::comm
