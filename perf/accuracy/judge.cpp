// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/judge.h"

#include <algorithm>
#include <cmath>

#include "perf/common/median.h"

namespace weft::accuracy {
namespace {

constexpr double kGood = 1.10;

// Every second turn, from `first` on; all of them where there is one only.
Turns halfOf(const Turns& turns, std::size_t first) {
  if (turns.size() < 2) return turns;
  Turns half;
  for (std::size_t i = first; i < turns.size(); i += 2) half.push_back(turns[i]);
  return half;
}

std::size_t bestOf(const std::vector<Turns>& forms) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < forms.size(); ++i)
    if (tools::median(forms[i]) < tools::median(forms[best])) best = i;
  return best;
}

// The best by the half that begins with `first`, judged by the other.
double judgedBy(const std::vector<Turns>& forms, std::size_t first) {
  std::vector<Turns> half;
  for (const Turns& turns : forms) half.push_back(halfOf(turns, first));
  const std::size_t best = bestOf(half);
  if (best == 0) return 1;
  return ratioOf(halfOf(forms[0], 1 - first), halfOf(forms[best], 1 - first));
}

}  // namespace

double errorOf(const Turns& predicted, const Turns& measured) {
  return std::abs(ratioOf(predicted, measured) - 1);
}

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double at = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double geometricMean(const std::vector<double>& values) {
  double logarithms = 0;
  for (const double value : values) logarithms += std::log(value);
  return values.empty() ? 1 : std::exp(logarithms / static_cast<double>(values.size()));
}

double ratioOf(const Turns& one, const Turns& other) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i)
    ratios.push_back(one[i] / other[i]);
  return tools::median(ratios);
}

Regret regretOf(const std::vector<Turns>& forms) {
  return {std::sqrt(judgedBy(forms, 0) * judgedBy(forms, 1)), bestOf(forms)};
}

Errors errorsOf(const std::vector<double>& errors) {
  return {errors.size(), quantile(errors, 0.5), quantile(errors, 0.9), 0, 0};
}

Regrets regretsOf(const std::vector<double>& factors) {
  if (factors.empty()) return {};
  const auto good = std::ranges::count_if(factors, [](double f) { return f <= kGood; });
  return {factors.size(), geometricMean(factors), std::ranges::max(factors),
          static_cast<double>(good) / static_cast<double>(factors.size())};
}

}  // namespace weft::accuracy
