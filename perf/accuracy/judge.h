// SPDX-License-Identifier: Apache-2.0
// The arithmetic: how far predictions are from what was measured, and what a choice costs.
#pragma once

#include <cstddef>
#include <vector>

namespace weft::accuracy {

// By turn; all forms of a point that are still measured have the same turns.
using Turns = std::vector<double>;

// How far the median over the turns of predicted / measured is from 1.
double errorOf(const Turns& predicted, const Turns& measured);

// Percentile by linear interpolation between the two nearest of the values; 0 of none.
double quantile(std::vector<double> values, double part);

// exp of the mean of the logarithms; 1 of none.
double geometricMean(const std::vector<double>& values);

// The median over the turns of one / other: what disturbs the machine disturbs both. They must have
// some turn in common.
double ratioOf(const Turns& one, const Turns& other);

// How much longer the chosen form takes than the best one. The best of several equal forms always
// looks a little better than it is, as noise has chosen it: so what is best is found out by the one
// half of the turns, how much better it is by the other half, and the other way round; the
// geometric mean of both. It may come out below 1. With one turn the best is what was quickest in
// it.
struct Regret {
  double factor = 1;
  std::size_t best = 0;  // by all turns; 0: the chosen form
};
// The first form is the chosen one. All have as many turns, at least one.
Regret regretOf(const std::vector<Turns>& forms);

// What many points come to.
struct Errors {
  std::size_t points = 0;
  double median = 0, p90 = 0;
  std::size_t samples = 0, inside = 0;  // single measurements, and those in the interval

  double insideShare() const {
    return samples == 0 ? 0 : static_cast<double>(inside) / static_cast<double>(samples);
  }
};
Errors errorsOf(const std::vector<double>& errors);

struct Regrets {
  std::size_t points = 0;
  double mean = 1, most = 1;  // geometric
  double within = 1;          // the share of points that are at most 1.10
};
Regrets regretsOf(const std::vector<double>& factors);

}  // namespace weft::accuracy
