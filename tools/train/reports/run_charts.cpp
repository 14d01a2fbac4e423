// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/run_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "tools/train/reports/html.h"
#include "tools/train/reports/plot.h"

namespace weft::train {
namespace {

using ValueOf = std::function<double(const StepRecord&)>;

class StepCharts {
 public:
  StepCharts(const RunRecord& run, size_t mostPoints)
      : run_(run), stepsOfPoint_((run.steps.size() + mostPoints - 1) / mostPoints) {}

  void add(const std::string& caption, const std::string& up, const ValueOf& value,
           std::optional<double> level = {}, bool isFromZero = true) {
    const std::string means =
        stepsOfPoint_ > 1 ? fmt::format(", means of {} steps", stepsOfPoint_) : "";
    const std::vector<Point> points = pointsOf(value);
    if (points.empty()) return;
    addPlot(caption + means, {caption, "step", up, {{"", points}}, isFromZero, level});
  }

  void addPlot(const std::string& caption, const Plot& plot) {
    html_ += figure(caption, plotSvg(plot));
  }

  std::string html() const { return "<div class=\"charts\">\n" + html_ + "</div>\n"; }

 private:
  std::vector<Point> pointsOf(const ValueOf& value) const {
    std::vector<Point> points;
    for (size_t first = 0; first < run_.steps.size(); first += stepsOfPoint_) {
      const size_t end = std::min(first + stepsOfPoint_, run_.steps.size());
      double sum = 0, count = 0;
      for (size_t i = first; i < end; ++i) {
        const double one = value(run_.steps[i]);
        if (!std::isfinite(one)) continue;  // the norm of a step that overflowed
        sum += one;
        ++count;
      }
      if (count > 0) points.push_back({static_cast<double>(run_.steps[end - 1].step), sum / count});
    }
    return points;
  }

  const RunRecord& run_;
  const size_t stepsOfPoint_;
  std::string html_;
};

template <class ValueOf>
std::vector<Point> evaluationsOf(const RunRecord& run, ValueOf valueOf) {
  std::vector<Point> points;
  for (const EvaluationRecord& each : run.evaluations)
    points.push_back({static_cast<double>(each.step), valueOf(each.found)});
  return points;
}

double lossOf(const Evaluation& found) { return found.loss; }
double perplexityOf(const Evaluation& found) { return std::exp(found.loss); }
double accuracyOf(const Evaluation& found) { return *found.accuracy; }

}  // namespace

std::string chartsOfLearning(const RunRecord& run, std::optional<double> targetLoss,
                             size_t mostPoints) {
  StepCharts charts(run, mostPoints);
  const std::string target = targetLoss ? ", the target dashed" : "";
  charts.add(
      "Loss" + target, "nats", [](const StepRecord& s) { return s.loss; }, targetLoss, false);
  if (!run.evaluations.empty())
    charts.addPlot("Validation loss" + target, {"Validation loss",
                                                "step",
                                                "nats",
                                                {{"", evaluationsOf(run, lossOf), true}},
                                                false,
                                                targetLoss});
  if (!run.evaluations.empty() && run.hasPerplexity)
    charts.addPlot("Validation perplexity", {"Validation perplexity",
                                             "step",
                                             "exp(loss)",
                                             {{"", evaluationsOf(run, perplexityOf), true}},
                                             false});
  if (!run.evaluations.empty() && run.evaluations.back().found.accuracy)
    charts.addPlot("Validation accuracy", {"Validation accuracy",
                                           "step",
                                           "share",
                                           {{"", evaluationsOf(run, accuracyOf), true}},
                                           false});
  charts.add("Gradient norm, before clipping", "norm",
             [](const StepRecord& s) { return s.gradientNorm; });
  if (!run.steps.empty() && run.steps.back().scaling)
    charts.add("Loss scale", "scale", [](const StepRecord& s) { return s.scaling->scale; });
  charts.add("Learning rate", "rate", [](const StepRecord& s) { return s.learningRate; });
  return charts.html();
}

std::string chartsOfSpeed(const RunRecord& run, size_t mostPoints) {
  StepCharts charts(run, mostPoints);
  charts.add("Throughput of all ranks", "tokens/s",
             [&](const StepRecord& s) { return run.tokensPerStep / s.seconds; });
  charts.add("Exposed communication, of a step", "ms",
             [](const StepRecord& s) { return s.exposedSeconds * 1e3; });
  return charts.html();
}

}  // namespace weft::train
