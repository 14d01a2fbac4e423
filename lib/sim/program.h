// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/plan.h"
#include "sim/job.h"
#include "sim/plans.h"
#include "sim/pricing.h"
#include "sim/symmetry.h"

namespace weft::sim {

// An op of a plan as the simulator runs it: one for each, in the same order.
struct Step {
  enum class Kind : std::uint8_t { Message, Wait, Work };
  Kind kind = Kind::Work;
  bool drain = false;
  bool byMemory = false;                                    // of a message
  plan::BoundOp::Kind planned = plan::BoundOp::Kind::Copy;  // what it is in the plan
  std::uint32_t peer = 0;     // as the first rank of the class sees it
  std::uint32_t arrival = 0;  // number of the arrival slot among those of its writer
  std::uint32_t target = 0;   // Wait: its number; Message: that of the peer's Wait for it
  std::uint64_t max = 0, limit = 0;
  Price price;

  bool publishes() const { return planned == plan::BoundOp::Kind::Publish; }
  // Bytes in a segment, which begins so far from the message's start.
  std::uint64_t bytes(std::uint64_t shift) const {
    const std::uint64_t left = limit > shift ? limit - shift : 0;
    return left < max ? left : max;
  }
  friend bool operator==(const Step&, const Step&) = default;
};

// What the first rank of a class runs.
struct Program {
  std::vector<Step> steps;
  std::uint64_t segments = 1, segmentBytes = 0;
  std::uint32_t depth = 0, lead = 0;
  std::uint32_t waits = 0;
  std::vector<std::uint32_t>
      readers;  // of what it publishes, as the first rank of the class sees them
  friend bool operator==(const Program&, const Program&) = default;
};

// "Put to rank 3", for errors.
std::string describe(const Step& step);

// The programs of all classes, with each message joined to the wait for it.
Status makePrograms(const Job& job, const Setting& setting, const Symmetry& symmetry,
                    const Plans& plans, std::vector<Program>* programs);

// Does each rank that is looked at run what the first of its class does? All of a small job are, and
// of a large one some from everywhere.
Status followsSymmetry(const Job& job, const Setting& setting, const Symmetry& symmetry,
                       Plans* plans, bool* follows);

}  // namespace weft::sim
