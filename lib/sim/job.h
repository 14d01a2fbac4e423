// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/model.h"
#include "plan/plan.h"
#include "sim/groups.h"
#include "sim/network.h"
#include "sim/time.h"
#include "transports/window.h"

namespace weft::sim {

// A call, as the plans that the ranks of a group would run.
struct Job {
  // Binds the plan of one rank of the network. Peers in it are members of its group.
  std::function<Status(std::uint32_t rank, std::unique_ptr<const plan::Plan>*)> plan;
  // Which arrival slots its peers raise, for a plan in rings or not.
  std::function<transport::ArrivalRegions(bool inRing)> regions;
  const plan::CostParameters* costs = nullptr;
  bool sharesBuffers = false;  // all buffers are of weftMemAlloc
  bool resultsAreRead = true;  // by their owners, before they are stored to again
  Groups groups = {};
};

// What a rank does for a while: it computes, or takes part in a call. In a stream one phase follows
// the other, and streams are at work at the same time.
struct Phase {
  static constexpr std::uint32_t kComputes = ~0u;

  std::string name;
  std::uint32_t stream = 0;
  std::vector<std::uint32_t> after =
      {};                          // phases before this one, of any stream, that it waits for
  std::uint32_t call = kComputes;  // of Workload::calls
  double ns = 0;                   // that it computes
};

// Several calls and computation on one clock. The ranks of a group make each call as often as each
// other: their first one is the same, and so on. Every call sets out with all slots free.
struct Workload {
  std::vector<Job> calls;
  std::vector<std::vector<Phase>> roles;                         // what a rank may have to do
  std::function<std::uint32_t(std::uint32_t)> roleOf = nullptr;  // by rank; without, the first
};

struct Straggler {
  std::uint32_t rank = 0;
  double factor = 1;  // of all that it computes, and that its core does
};

// Noise: each time of a core and each latency is drawn from a log-normal distribution whose median
// is that of a quiet machine. The same seed draws the same.
struct Jitter {
  std::uint64_t seed = 0;
  double sigma = 0;  // of the logarithm; 0: none
};

// What a rank's core does, from when to when, or how long a message is on its way.
struct Span {
  std::uint32_t rank = 0;
  std::uint32_t lane = 0;
  std::uint32_t op = 0;  // of the plan
  std::uint64_t segment = 0;
  Time begin = 0, end = 0;
  std::uint64_t bytes = 0;
  std::uint32_t peer = 0;
  bool isMessage = false;  // which rank `rank` has sent to `peer`
  const char* name = "";   // of the op's kind
};

struct Setting {
  const Network* network = nullptr;
  double messageNs = plan::Between().messageNs;  // of a core, for each message on a link
  std::uint32_t coresOfNode = 0;                 // 0: one for each stream of a rank, or
  bool computesOnCores = false;                  // one for each rank, which computes on it, too
  std::uint32_t lanes = transport::kMaxLanes;
  std::vector<Straggler> stragglers = {};
  Jitter jitter = {};
  bool folds = true;  // simulate one rank of each class, where the job is symmetric
  // Where a job is symmetric only then, the bytes of a message's last segment are spread over its
  // chunks, of which the last would be shorter. Of a job that is not folded they always are.
  bool evens = false;
  // Of a job that is not folded: of more ranks, those that are found alike share a program. It has as many
  // steps as there are ranks.
  std::uint32_t ownPrograms = 256;
  std::function<void(const Span&)> observe = nullptr;  // of a job that is not folded

  bool sharesCores() const { return coresOfNode != 0 || computesOnCores; }
};

// What one resource has carried.
struct Load {
  std::uint32_t resource = 0;
  double bytes = 0;
  double share = 0;  // of what it could have
};

// Why each rank is simulated.
enum class Unfolded : std::uint8_t {
  No,         // one of each class stands for all
  NotAsked,   // Setting::folds
  Different,  // its nodes differ, or its ranks in speed
  Observed,   // each rank is looked at
  Cores,      // ranks share cores
  Plans,      // the op lists of its ranks differ by more than a shift
};

// When a phase was at work.
struct Interval {
  Time begin = kNever, end = kNever;
};

struct Result {
  double ns = 0;              // until the last rank returns
  std::uint32_t slowest = 0;  // that rank
  std::uint32_t simulated = 0;
  Unfolded unfolded = Unfolded::No;
  bool evened = false;  // the last segment was spread
  std::uint64_t events = 0;
  std::uint64_t messages = 0;                 // of the job
  std::vector<Load> loads;                    // the busiest first
  std::vector<std::vector<Interval>> phases;  // by simulated rank, which are the first ones
};

// How long the call takes. An error names the rank and the op: a plan without ops, an arrival that
// nobody waits for or nobody raises, a rank that cannot go on.
Status simulate(const Job& job, const Setting& setting, Result* result);

// The same of phases. Further errors: a phase that waits for itself or a later one, a role or a call
// that is not there.
Status simulate(const Workload& workload, const Setting& setting, Result* result);

}  // namespace weft::sim
