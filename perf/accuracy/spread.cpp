// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/spread.h"

#include <algorithm>

namespace weft::accuracy {
namespace {

constexpr std::size_t kShort = 64 << 10;

std::size_t kindOf(const Verdict& verdict) {
  const Point& point = verdict.measured->point;
  const bool sharesCores = verdict.world->tuning.costs.cores < verdict.world->ranks;
  return (point.bytes < kShort ? 1u : 0u) + (point.mode == Mode::Fresh ? 2u : 0u) +
         (sharesCores ? 4u : 0u);
}

const Turns& turnsOf(const Verdict& verdict) {
  return verdict.measured->forms[verdict.chosen].turns;
}

}  // namespace

Spread::Spread(const std::vector<Verdict>& elsewhere) {
  std::array<std::vector<double>, 8> seen;
  for (const Verdict& verdict : elsewhere) {
    if (!verdict.isMeasured || verdict.forecasts[0].ns <= 0) continue;
    const Turns& turns = turnsOf(verdict);
    for (std::size_t i = 0; i < turns.size(); ++i)
      seen[kindOf(verdict)].push_back(turns[i] / verdict.forecasts[0].turns[i]);
  }
  for (std::size_t kind = 0; kind < seen.size(); ++kind)
    if (!seen[kind].empty())
      ratios_[kind] = {quantile(seen[kind], 0.05), quantile(seen[kind], 0.95)};
}

const Ratios& Spread::of(const Verdict& verdict) const { return ratios_[kindOf(verdict)]; }

void widen(const Spread& spread, std::vector<Verdict>* verdicts) {
  for (Verdict& verdict : *verdicts) {
    if (!verdict.isMeasured) continue;
    Forecast& forecast = verdict.forecasts[0];
    forecast.lowNs = std::min(forecast.lowNs, forecast.ns * spread.of(verdict).low);
    forecast.highNs = std::max(forecast.highNs, forecast.ns * spread.of(verdict).high);
    verdict.inside = countInside(forecast, turnsOf(verdict));
  }
}

}  // namespace weft::accuracy
