// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/clock.h"
#include "sim/job.h"
#include "sim/sharing.h"
#include "sim/symmetry.h"

namespace weft::sim {

// What does the work of ranks. A worker is one stream of a rank, which does one thing at a time: on a
// core of its own, or with others on one that is a resource, as the memory is that it uses meanwhile.
class Cores {
 public:
  // The rates of the network's resources, and of cores where they are resources.
  static std::vector<double> ratesOf(const Setting& setting, std::uint32_t streams);

  // All outlive it. Rank r has the workers from r * streams on.
  Cores(const Setting& setting, const Symmetry& symmetry, Clock& clock, Sharing& sharing,
        std::uint32_t ranks, std::uint32_t streams);

  std::uint32_t rankOf(std::uint32_t worker) const { return worker / streams_; }
  std::uint32_t workerOf(std::uint32_t rank, std::uint32_t stream) const {
    return rank * streams_ + stream;
  }
  std::uint32_t workers() const { return static_cast<std::uint32_t>(began_.size()); }
  double slownessOf(std::uint32_t rank) const { return slowness_[rank]; }
  Time began(std::uint32_t worker) const { return began_[worker]; }

  // The core works for so long, for its worker alone, and moves so much of its node's memory. An
  // event tells the end, or the worker's cookie.
  void work(std::uint32_t worker, double ns, double memoryBytes);
  // Computes on what is no core, unless the setting says that it is.
  void compute(std::uint32_t worker, double ns);

  static constexpr std::uint64_t kCookie = std::uint64_t{1} << 32;  // with a worker in the low half

 private:
  static std::uint32_t coresOf(const Setting& setting, std::uint32_t streams);  // of a node; 0: any
  std::uint32_t coreOf(std::uint32_t worker) const;                             // as a resource

  const Setting& setting_;
  const Network& network_;
  const Symmetry& symmetry_;
  Clock& clock_;
  Sharing& sharing_;
  const std::uint32_t streams_;
  std::vector<double> slowness_;         // by rank
  std::vector<Time> began_;              // by worker
  std::vector<std::uint32_t> channels_;  // by worker; empty: cores are no resource
};

}  // namespace weft::sim
