// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/call.h"
#include "plan/costs.h"
#include "schedule/ir.h"

namespace weft::plan {

// How a schedule on shared buffers reaches its peers'.
enum class Reach : std::uint8_t { Mapped, Cma };

// How long one call takes by this schedule, in nanoseconds. A pure function: it counts what the
// schedule's ops cost the busiest core, and the rounds in which ranks wait for each other, and
// prices them by the machine's numbers. Meant for comparing schedules of the same call: what is
// equal in all of them (entering the call, the caches' state before it) is left out. It is for data
// that applications use between calls, so what a peer reads has been written by its owner since.
double estimateNs(const schedule::Schedule& schedule, const Call& call, const CostParameters& costs,
                  Reach reach = Reach::Mapped);

// What one rank writes to, and reads from, memory of other NUMA nodes in one call.
struct FarBytes {
  double written = 0, read = 0;
};
FarBytes farBytesOf(const schedule::Schedule& schedule, const Call& call,
                    const CostParameters& costs, std::uint32_t rank);

// What it costs that all ranks hear of each other once.
double roundNs(std::uint32_t ranks, const CostParameters& costs);

// From so many bytes of a rank's buffers on, results are stored past the caches.
std::uint64_t streamMin(std::uint32_t ranks, const CostParameters& costs);

}  // namespace weft::plan
