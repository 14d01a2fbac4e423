// SPDX-License-Identifier: Apache-2.0
// What a run tells, as plain data; table.h and json.h are its two forms.
#pragma once

#include <weft/weft.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perf/weft-perf/bench.h"
#include "perf/weft-perf/collective.h"

namespace weft::perf {

// One rank, in a form that ranks can send to each other.
struct RankInfo {
  int rank, group, pid, device;  // device: the rank's number on its host
  char host[64];
  char processor[96];
  std::uint64_t shared, plans, other;  // the library's memory, in bytes
};

// This rank's. Collective only in so far as the communicator must be alive.
RankInfo rankInfo(Team& team);

// Of the rank that holds most.
struct Memory {
  std::uint64_t shared = 0, plans = 0, other = 0;
  std::uint64_t total() const { return shared + plans + other; }
};
Memory largestMemory(const std::vector<RankInfo>& ranks);

struct Figures {
  double microseconds;
  double algBw;  // 10^9 bytes a second
  double busBw;
};
Figures figuresOf(const Problem& problem, const Measurement& measurement);

struct Row {
  Problem problem;  // as rank 0 sees it
  std::optional<Measurement> outOfPlace;
  std::optional<Measurement> inPlace;  // none where the collective has no such form
  std::string explanation;             // with --explain
};

struct Summary {
  std::uint64_t wrong = 0;
  double busBwSum = 0;
  int busBwCount = 0;
  double requiredBusBw = -1;  // NCCL_TESTS_MIN_BW, -1 without

  void add(const Row& row);
  double averageBusBw() const { return busBwCount > 0 ? busBwSum / busBwCount : 0; }
  bool checksBusBw() const { return requiredBusBw >= 0; }
  bool fastEnough() const;  // nccl-tests leaves 10 % for noise
  bool passed() const { return wrong == 0 && fastEnough(); }
};

std::string timestamp();  // "2026-01-31 23:59:59", local time, as nccl-tests

}  // namespace weft::perf
