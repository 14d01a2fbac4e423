// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/verdict.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "perf/common/median.h"

namespace weft::accuracy {
namespace {

bool isComplete(const Form& form, const Measured& measured) {
  return !form.turns.empty() && form.turns.size() == measured.forms[0].turns.size();
}

// Which measured form the model takes now. A short name may mean another form to it than when that was
// measured; the long ones, which come later, say all.
std::size_t chosenOf(const Verdict& verdict) {
  if (verdict.isSame) return 0;
  for (std::size_t i = verdict.forecasts.size(); i-- > 1;)
    if (verdict.forecasts[i].hash == verdict.forecasts[0].hash) return i;
  return 0;
}

void judgeErrors(Verdict* verdict) {
  const Measured& measured = *verdict->measured;
  const Forecast& forecast = verdict->forecasts[0];
  const Turns& turns = measured.forms[verdict->chosen].turns;
  verdict->measuredNs = tools::median(turns);
  verdict->error = errorOf(forecast.turns, turns);
  verdict->samples = turns.size();
  verdict->inside = countInside(forecast, turns);
}

void judgeRegret(Verdict* verdict) {
  const Measured& measured = *verdict->measured;
  std::vector<Turns> forms{measured.forms[verdict->chosen].turns};
  std::vector<std::size_t> which{verdict->chosen};
  for (std::size_t i = 1; i < measured.forms.size(); ++i) {
    const Form& form = measured.forms[i];
    if (i == verdict->chosen || !isComplete(form, measured)) continue;
    if (verdict->forecasts[i].hash == verdict->forecasts[0].hash) {
      verdict->again = ratioOf(form.turns, forms[0]);
      continue;
    }
    verdict->otherErrors.push_back(errorOf(verdict->forecasts[i].turns, form.turns));
    forms.push_back(form.turns);
    which.push_back(i);
  }
  const Regret regret = regretOf(forms);
  verdict->regret = regret.factor;
  verdict->best = which[regret.best];
}

// The i-th of all points of all worlds.
struct Work {
  const World* world;
  const Measured* measured;
  const Predictor* predictor;
};

Status forecastAll(const Work& work, Verdict* verdict) {
  std::vector<Forecast> forecasts;
  for (const Form& form : work.measured->forms)
    WEFT_TRY(work.predictor->forecast(*work.measured, form.name, &forecasts.emplace_back()));
  // The model's price of the choice is that of the form that it is.
  for (std::size_t i = forecasts.size(); i-- > 1;)
    if (forecasts[i].hash == forecasts[0].hash) forecasts[0].modelNs = forecasts[i].modelNs;
  *verdict = judged(*work.world, *work.measured, std::move(forecasts));
  return {};
}

}  // namespace

std::size_t countInside(const Forecast& forecast, const Turns& turns) {
  return static_cast<std::size_t>(std::ranges::count_if(
      turns, [&](double ns) { return ns >= forecast.lowNs && ns <= forecast.highNs; }));
}

Verdict judged(const World& world, const Measured& measured, std::vector<Forecast> forecasts) {
  Verdict verdict;
  verdict.world = &world;
  verdict.measured = &measured;
  verdict.forecasts = std::move(forecasts);
  verdict.isSame = verdict.forecasts[0].hash == measured.hash;
  verdict.chosen = chosenOf(verdict);
  verdict.isMeasured = (verdict.isSame || verdict.chosen != 0) &&
                       isComplete(measured.forms[verdict.chosen], measured);
  if (!verdict.isMeasured) return verdict;
  judgeErrors(&verdict);
  judgeRegret(&verdict);
  return verdict;
}

Status judgeAll(const std::vector<World>& worlds, std::vector<Verdict>* verdicts) {
  std::vector<std::unique_ptr<const Predictor>> predictors;
  std::vector<Work> all;
  for (const World& world : worlds) {
    WEFT_TRY(Predictor::make(world, &predictors.emplace_back()));
    for (const Measured& measured : world.points)
      all.push_back({&world, &measured, predictors.back().get()});
  }
  verdicts->assign(all.size(), {});
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  Status first;
  const auto work = [&]() {
    for (std::size_t i = next++; i < all.size(); i = next++) {
      const Status done = forecastAll(all[i], &(*verdicts)[i]);
      const std::lock_guard lock(mutex);
      if (!done.ok() && first.ok()) first = done;
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
  work();
  threads.clear();
  return first;
}

Tally tallyOf(const std::vector<Verdict>& verdicts,
              const std::function<bool(const Verdict&)>& isMeant) {
  std::vector<double> errors, others, regrets;
  std::size_t samples = 0, inside = 0;
  for (const Verdict& verdict : verdicts) {
    if (!verdict.isMeasured || !isMeant(verdict)) continue;
    errors.push_back(verdict.error);
    regrets.push_back(verdict.regret);
    others.insert(others.end(), verdict.otherErrors.begin(), verdict.otherErrors.end());
    samples += verdict.samples;
    inside += verdict.inside;
  }
  Tally tally{errorsOf(errors), errorsOf(others), regretsOf(regrets)};
  tally.errors.samples = samples;
  tally.errors.inside = inside;
  return tally;
}

}  // namespace weft::accuracy
