// SPDX-License-Identifier: Apache-2.0
// Predictions beside measurements.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "perf/accuracy/judge.h"
#include "perf/accuracy/predict.h"
#include "perf/accuracy/world.h"

namespace weft::accuracy {

// One point of one job.
struct Verdict {
  const World* world = nullptr;
  const Measured* measured = nullptr;
  std::vector<Forecast> forecasts;  // of the forms
  bool isSame = true;               // the op list that ran is the one that is predicted
  std::size_t chosen = 0;  // the form that the model takes now; 0 where it has run as the choice
  bool isMeasured = true;  // that form was, to the end
  double measuredNs = 0;   // the median of its turns
  double error = 0;
  std::size_t samples = 0, inside = 0;
  std::vector<double> otherErrors;  // of the other forms
  double regret = 1;
  std::size_t best = 0;  // a form; `chosen` where there is none that is better
  double again = 0;      // the chosen form, forced, over the choice: noise alone; 0: not known
};

// Predicts all points, on all cores of this machine. `worlds` outlive the verdicts.
Status judgeAll(const std::vector<World>& worlds, std::vector<Verdict>* verdicts);

// Of one point, whose forms have been predicted.
Verdict judged(const World& world, const Measured& measured, std::vector<Forecast> forecasts);

// How many turns lie in the interval.
std::size_t countInside(const Forecast& forecast, const Turns& turns);

// What those verdicts come to for which isMeant(verdict).
struct Tally {
  Errors errors, otherErrors;
  Regrets regrets;
};
Tally tallyOf(const std::vector<Verdict>& verdicts,
              const std::function<bool(const Verdict&)>& isMeant);

}  // namespace weft::accuracy
