// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "tune/curve.h"

namespace weft::tune {

// What the model of plan/model.h needs to know of a machine: times in nanoseconds, and rates of a
// core while another one does the same beside it, as ranks do. Plain data: ranks hand it to each
// other, and what one of them measured holds for all.
struct Machine {
  double cacheBytes = 0;  // of a core's second-level cache
  double sharers = 0;     // cores that share the last-level cache
  double exchangeNs = 0;  // a flag from one core to another, until it is seen
  double messageNs = 0;   // each further flag of the same exchange
  double handOverNs = 0;  // from a thread to another on its core, by sched_yield
  double foldNear = 0;    // each source of a sum of two, in the nearest caches
  double cmaCallNs = 0;   // process_vm_writev; 0: not permitted
  Curve load;             // of what this core has written
  Curve copy;             // by memcpy, from own memory to own
  Curve put;              // ... to memory that another core has read
  Curve take;             // ... from memory that another core has written
  Curve stream;           // as put, but past the caches; what that costs the next reader counts
  Curve cmaPut;           // as put, by process_vm_writev
  Curve cmaTake;          // as take, by process_vm_readv
  Curve farPut = {};      // as put, to memory of a core of another NUMA node; 0: there is none
  Curve farTake = {};     // as take, likewise
  friend bool operator==(const Machine&, const Machine&) = default;
};
static_assert(std::is_trivially_copyable_v<Machine>);

// A measurement leaves 0 where it found no core or no time. This fills it in from the rest.
Machine estimated(Machine measured);

// Are these numbers that a machine may have? Guards against garbage, from a file or from a peer.
bool isSane(const Machine& machine);

// From which footprint on stores past the caches win. Where they never do, they are left to results
// that no cache holds.
std::uint64_t streamFootprint(const Machine& machine);

// "name value" a line, for a curve with a value for each of kFootprints; parse() is the inverse, and
// false where a name is missing, unknown or given twice, or what it comes to is not sane. What is
// measured between NUMA nodes alone need not be there.
std::string toText(const Machine& machine);
std::string figureNames();
bool parse(std::string_view text, Machine* machine);

// What measurements of one machine say together, the latest of them last. Load only ever makes a
// figure worse, and the very best is luck that calls do not meet: so each is the upper quartile of
// those measured. What the system tells is the latest.
Machine typicalOf(std::span<const Machine> measured);

// The largest factor by which a figure of one is better than that of the other; at least 1. Figures
// that one of them has not measured do not count.
double differenceOf(const Machine& one, const Machine& other);

// For people, with units, a few lines.
std::string describe(const Machine& machine);

}  // namespace weft::tune
