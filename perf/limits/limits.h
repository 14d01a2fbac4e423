// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/link_costs.h"
#include "plan/bind.h"
#include "plan/call.h"
#include "plan/decide.h"
#include "plan/plan.h"
#include "plan/tuning.h"
#include "transports/window.h"
#include "tune/machine.h"

// What a rank has and does at a number of ranks, by the functions that communicators are made with,
// but without the ranks.
namespace weft::tools {

// Hosts with so many ranks each, a core for each, in equal parts on so many NUMA nodes, and links that
// no file describes: what the ranks of their communicator plan.
class Job {
 public:
  Job(std::uint32_t ranks, std::uint32_t localRanks, const tune::Machine& machine,
      std::uint32_t numaNodes = 1);
  // Of what ranks have agreed on. `oneHost`: all of them share memory.
  Job(plan::Tuning tuning, bool oneHost);

  std::uint32_t ranks() const { return tuning_.ranks; }
  // Why there can be no such communicator, if there can be none.
  const Status& fits() const { return fits_; }
  const transport::WindowLayout& layout() const { return layout_; }
  const plan::Tuning& tuning() const { return tuning_; }
  // Which of its arrival slots a rank's peers raise.
  transport::ArrivalRegions regionsOf(bool inRing) const;
  // A job that is too large for a communicator has one with the arrival slots of this call alone.
  Status keepOnly(const plan::Decision& decision);
  // The same on all ranks, and then the plan of one.
  Status decide(const plan::Call& call, plan::Decision* out) const;
  Status plan(const plan::Call& call, const plan::Decision& decision, std::uint32_t rank,
              std::unique_ptr<plan::Plan>* out) const;
  bool areApart(std::uint32_t a, std::uint32_t b) const {
    return tuning_.costs.between && tuning_.nodes[a] != tuning_.nodes[b];
  }
  plan::FarBytes farBytesOf(const plan::Call& call, const plan::Decision& decision,
                            std::uint32_t rank) const;
  // The ranks of other hosts that `rank` sends to in its plan, in order; then also those that it hears
  // from: over verbs, a queue pair for each, and for each rail.
  std::vector<std::uint32_t> farTargetsOf(const plan::Plan& plan, std::uint32_t rank) const;
  std::vector<std::uint32_t> farPeersOf(const plan::Plan& plan, std::uint32_t rank) const;

 private:
  plan::BindTarget target() const;
  std::vector<std::uint32_t> farPeersBy(const plan::Plan& plan, std::uint32_t rank,
                                        bool waits) const;

  plan::Tuning tuning_;
  bool oneHost_;
  transport::WindowLayout layout_;
  Status fits_;
};

// Of that many bytes in all: the vector, or the blocks of all ranks, 8 bytes each at least.
plan::Call callOf(schedule::Collective collective, std::uint32_t ranks, std::size_t bytes);

// One call, as the busier of the first two ranks runs it.
struct CallLimits {
  std::string algorithm;
  std::size_t planBytes = 0;
  double planMs = 0;            // of the processor: to decide and to bind
  std::uint64_t messages = 0;   // that the rank sends
  std::uint64_t remote = 0;     // of those, to other hosts
  std::uint64_t sentBytes = 0;  // in messages
  std::uint64_t farBytes = 0;   // written to and read from memory of other NUMA nodes
};

struct Limits {
  std::uint32_t ranks = 0;
  std::string refused;              // why there can be no such communicator; else empty
  std::size_t windowBytes = 0;      // address space: pages come with what is used
  std::size_t createdBytes = 0;     // of those, what has pages from the beginning
  std::size_t keptDescriptors = 0;  // for the ranks of its host, and while they meet
  std::size_t mostDescriptors = 0;
  // While they meet: of the bootstrap's root, and what it sends in a round.
  std::size_t rootConnections = 0;
  std::size_t rootRoundBytes = 0;
  std::uint32_t numaNodes = 1;  // of a host
  CallLimits barrier, shortSum, longSum;
  CallLimits split;  // all of its rounds, where nothing is to be opened
  // Of a communicator of all ranks more, at most: where its rank 0 has been one, or all share memory;
  // else, over a wire, of the process of its rank 0.
  control::LinkCosts further, firstOfRoot;
};

inline constexpr std::size_t kShortBytes = 8, kLongBytes = std::size_t{64} << 20;

Limits limitsOf(std::uint32_t ranks, std::uint32_t localRanks, const tune::Machine& machine,
                std::uint32_t numaNodes = 1);

// A column of the table, and its cell in the row of each number of ranks.
struct Column {
  std::string_view title;
  std::string (*cell)(const Limits& limits);
};
// With what crosses between NUMA nodes, if there are several.
std::vector<Column> columns(bool far);

// In Markdown, as in docs/scale.md.
std::string tableOf(const std::vector<Limits>& rows);

// By collective, of 8 bytes and of 64 MiB: the queue pairs that the first two ranks have at most after
// one call, for each rail.
std::string queuePairsOf(const std::vector<std::uint32_t>& ranks, std::uint32_t localRanks,
                         const tune::Machine& machine);

}  // namespace weft::tools
