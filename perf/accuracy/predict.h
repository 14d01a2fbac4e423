// SPDX-License-Identifier: Apache-2.0
// What weft thinks of its own calls: the forms that a point may take, and the time of each by the
// model that chooses and by the simulator. Nothing of it comes from a measured collective.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "perf/accuracy/world.h"
#include "perf/limits/limits.h"
#include "plan/call.h"
#include "plan/decide.h"
#include "sim/job.h"
#include "sim/network.h"

namespace weft::accuracy {

// The call of a point, with the choice of its form left to the library.
plan::Call callOf(const Point& point, std::uint32_t ranks);

// The names by which the forms of a point can be forced: those among which the model chooses, or,
// with `all`, those that it never chooses, too.
Status formsOf(const tools::Job& job, const Point& point, bool all,
               std::vector<std::string>* names);

struct Forecast {
  std::string algorithm;   // of the plan that runs
  std::uint64_t hash = 0;  // of rank 0's
  double modelNs = 0;      // of one call, by which the model chooses; 0 of the choice
  double ns = 0;           // a call as it is measured, by the simulator: the median of its turns
  // The least and the most that the states of the machine before and after its turns come to.
  double lowNs = 0, highNs = 0;
  Turns turns = {};  // each by the state that was measured last
};

// Predicts for one communicator. Any thread.
class Predictor {
 public:
  // The world outlives it.
  static Status make(const World& world, std::unique_ptr<const Predictor>* out);
  const tools::Job& job() const { return job_; }
  // `form`: as it is forced; "": the choice.
  Status forecast(const Measured& measured, const std::string& form, Forecast* out) const;

 private:
  explicit Predictor(const World& world) : world_(world), job_(world.tuning, true) {}
  Status simulate(const Point& point, const plan::Call& call, const plan::Decision& decision,
                  const State& state, double* ns) const;
  Status simulateFresh(sim::Workload* workload, const sim::Setting& setting, const Point& point,
                       const plan::CostParameters& costs, double entryNs, double* ns) const;
  Status simulateSteady(sim::Workload* workload, const sim::Setting& setting, const Point& point,
                        double entryNs, double* ns) const;
  // Outlived by the call, the decision and the costs.
  sim::Job jobOf(const Point& point, const plan::Call& call, const plan::Decision& decision,
                 const plan::CostParameters& costs) const;
  Status bind(const Point& point, const plan::Call& call, const plan::Decision& decision,
              std::uint32_t rank, std::unique_ptr<const plan::Plan>* out) const;

  const World& world_;
  const tools::Job job_;
  sim::Network network_;
};

}  // namespace weft::accuracy
