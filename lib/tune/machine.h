// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace weft {

// What the model of plan/model.h needs to know of a machine. Times are in nanoseconds, rates in
// bytes a nanosecond (GB/s). *Near* is within a core's own cache, *far* is beyond it. Plain data:
// ranks hand it to each other, and what one of them measured holds for all.
struct Machine {
  double cacheBytes = 0;  // of a core's second-level cache
  double exchangeNs = 0;  // a flag from one core to another, until it is seen
  double messageNs = 0;   // each further flag of the same exchange
  double handOverNs = 0;  // from a thread to another on its core, by sched_yield
  double copyNear = 0;    // memcpy
  double copyFar = 0;
  double streamFar = 0;     // a copy that stores past the cache
  double streamMin = 0;     // bytes of a result from which on such stores win
  double foldNear = 0;      // each source of a sum of two
  double putAcross = 0;     // stores to lines that another core has read ...
  double takeAcross = 0;    // ... and loads of those that it has written
  double kernelCallNs = 0;  // process_vm_writev; 0: not permitted
  double kernelNear = 0;
  double kernelFar = 0;
  friend bool operator==(const Machine&, const Machine&) = default;
};
static_assert(std::is_trivially_copyable_v<Machine>);

// Are these numbers that a machine may have? Guards against garbage, from a file or from a peer.
bool isSane(const Machine& machine);

// One "name value" a line; parse() is the inverse, and false where a name is missing, unknown or
// given twice, or the result is not sane.
std::string toText(const Machine& machine);
bool parse(std::string_view text, Machine* machine);

// For people, with units, a few lines.
std::string describe(const Machine& machine);

}  // namespace weft
