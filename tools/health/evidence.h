// SPDX-License-Identifier: Apache-2.0
// All that a run has measured, equal on all ranks, and what it says of the job. Every rank draws
// the same conclusions, so that all end with the same exit code.
#pragma once

#include <string>
#include <vector>

#include "tools/checks/host.h"
#include "tools/health/blame.h"
#include "tools/health/collectives.h"
#include "tools/health/cores.h"

namespace weft::health {

struct Evidence {
  std::vector<Member> members;
  Ways ways;
  std::vector<checks::HostReport> hosts;  // by the hosts' numbers
  std::vector<checks::Finding> counters;  // of the hosts' network devices, that rose meanwhile
  std::vector<CoreShare> shares;          // by rank
  std::vector<int> starved;               // ranks, confirmed
  Matrix pairs{0};
  int sweeps = 0;                 // how often each pair was measured
  std::vector<Suspect> suspects;  // confirmed
  CollectiveReport collectives;
  std::set<std::pair<int, int>> garbled;  // links over which the tool's own texts came wrong
  double seconds = 0;
};

// Faults of the data path and of ranks; those of hosts are in their reports. Worst first.
std::vector<checks::Finding> conclude(const Evidence& evidence);

// Of a failed call of weft; its culprit is the error's.
checks::Finding findingOf(weftResult_t result, const ErrorInfo& error);

}  // namespace weft::health
