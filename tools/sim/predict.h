// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/decide.h"
#include "sim/bound.h"
#include "sim/job.h"
#include "tools/sim/cluster.h"
#include "tools/sim/goal.h"
#include "tools/sim/options.h"

namespace weft::simulator {

// What is predicted of one size.
struct Row {
  std::size_t bytes = 0, count = 0;
  std::string algorithm;
  std::uint64_t hash = 0;  // of rank 0's op list
  std::uint64_t segments = 1;
  sim::Result result;            // of a quiet machine
  double lowNs = 0, highNs = 0;  // 5 and 95 of 100 draws, with --jitter
  sim::Bound bound;
  double busFactor = 0;
  std::vector<plan::Estimate> estimates;  // of the model, of all that it may choose
  std::string tooLarge;                   // why there could be no such communicator today
  double seconds = 0;                     // that the simulation took

  double algbw() const { return static_cast<double>(bytes) / result.ns; }  // GB/s
  double busbw() const { return algbw() * busFactor; }
  double shareOfBound() const { return bound.ns() / result.ns; }
};

// `goal`: what is simulated, in that form; null: is not wanted.
Status predict(const Options& options, const Cluster& cluster, std::size_t bytes,
               const std::function<void(const sim::Span&)>& observe, Goal* goal, Row* row);

}  // namespace weft::simulator
