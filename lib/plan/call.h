// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "reduce/reduce.h"
#include "schedule/collective.h"
#include "transports/window.h"

namespace weft::plan {

// What every rank asks for, apart from its buffers. The fingerprint covers all of it, so two ranks
// whose calls differ in anything find out.
struct Call {
  schedule::Collective collective = schedule::Collective::Barrier;
  reduce::DType type = reduce::DType::U8;
  reduce::RedOp op = reduce::RedOp::Sum;
  int root = 0;
  std::uint64_t count = 0;              // of the vector, or of one rank's block
  std::span<const std::size_t> counts;  // uneven forms: elements of each rank's block
  std::span<const std::size_t> displs;  // uneven forms: where they start; empty: packed
  // Uneven, and each rank knows its own counts only, which therefore are not in the fingerprint.
  bool exchanges = false;
  bool reproducible = false;
  std::string_view algorithm;  // forced by the caller; empty: choose
};

// An epilogue in an all-reduce is called once for each element, by the rank whose block it is in:
// such a call is a reduce-scatter and an all-gather.
bool isStep(const Call& call);

// nccl-tests' name ("all_reduce"), and the uneven form's ("all_gather_v").
std::string_view collectiveName(schedule::Collective collective, bool uneven = false);

// The uneven form: does each rank know the counts of all, so that it is planned? Else each knows its own.
constexpr bool sharesCounts(schedule::Collective collective) {
  return collective == schedule::Collective::AllGather ||
         collective == schedule::Collective::ReduceScatter;
}

// The call as people write it: "all_reduce(count=1000, float32, sum)"; without a count where ranks
// have counts of their own.
std::string describe(schedule::Collective collective, std::uint64_t count, reduce::DType type,
                     reduce::RedOp op, int root, bool uneven);
// The same from a peer's record.
std::string describe(const transport::CallRecord& record);

std::uint64_t packWhat(const Call& call);  // CallRecord::what
std::uint64_t fingerprintOf(const Call& call, std::uint32_t ranks, std::string_view algorithm);

}  // namespace weft::plan
