// SPDX-License-Identifier: Apache-2.0
#include "tools/train/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "perf/common/machine.h"
#include "perf/common/program.h"
#include "tools/train/files.h"
#include "tools/train/parts_of_model.h"
#include "tools/train/reports/model_flops.h"
#include "tools/train/reports/plot.h"
#include "tools/train/reports/run_page.h"
#include "tools/train/reports/words.h"

namespace weft::train {
namespace {

double meanLossOfLastTenth(const std::vector<StepRecord>& steps) {
  const size_t count = std::max<size_t>(steps.size() / 10, 1);
  return std::accumulate(steps.end() - static_cast<std::ptrdiff_t>(count), steps.end(), 0.0,
                         [](double sum, const StepRecord& step) { return sum + step.loss; }) /
         static_cast<double>(count);
}

RunRecord emptyRecord(const Options& o, int ranks) {
  RunRecord run;
  run.ranks = ranks;
  run.sequencesPerStep = static_cast<double>(o.batch * o.accumulate * ranks / anyPartOf(o).count());
  run.tokensPerStep = run.sequencesPerStep * static_cast<double>(o.length);
  run.flopsPerToken = flopsPerToken(o.shape, o.length);
  run.peakTeraflops = o.peakTeraflops;
  run.hasPerplexity = !fillsMasks(o.shape.family);
  return run;
}

std::string teraflopsText(const Summary& s) {
  return fmt::format("{:.3g} TFLOP/s{}", s.teraflops,
                     s.utilization ? fmt::format(", MFU {:.1f} %", 100 * *s.utilization) : "");
}

std::string jsonOf(const Summary& s, const Options& options) {
  nlohmann::ordered_json json = {
      {"model", options.model},
      {"parameters", static_cast<int64_t>(s.parameters)},
      {"ranks", s.ranks},
      {"hosts", s.hosts},
      {"threads", s.threads},
      {"steps", s.steps},
      {"elapsed_s", s.elapsedSeconds},
      {"first_loss", s.firstLoss},
      {"last_loss", s.lastLoss},
      {"sequences_per_s", s.sequencesPerSecond},
      {"tokens_per_s", s.tokensPerSecond},
      {"teraflop_per_s", s.teraflops},
      {"step_ms", s.stepMs},
      {"exposed_ms", s.exposedMs},
      {"wire_bytes_per_parameter", s.wireBytes},
      {"memory_bytes", s.memoryBytes},
      {"peak_resident_bytes", s.peakResidentBytes},
      {"load_ms", s.loading.ms},
      {"load_wait_ms", s.loading.waitMs},
      {"load_first_ms", s.loading.firstMs},
  };
  if (s.weights) json["weights"] = fmt::format("{:016x}", *s.weights);
  if (!s.failure.empty()) json["failure"] = s.failure;
  if (s.pipeline) {
    json["pipeline_idle"] = s.pipeline->idle;
    json["pipeline_idle_of_schedule"] = s.pipeline->ofSchedule;
    json["pipeline_idle_of_unequal_runs"] = s.pipeline->ofUnequalRuns;
  }
  if (s.utilization) json["model_flops_utilization"] = *s.utilization;
  if (s.validation) json["validation_loss"] = s.validation->loss;
  if (s.validation && s.validation->accuracy) json["validation_accuracy"] = *s.validation->accuracy;
  if (s.offload) {
    json["offload_bytes"] = s.offload->bytes;
    json["offload_read_bytes"] = s.offload->readBytes;
    json["offload_wait_ms"] = s.offload->waitMs;
  }
  if (s.scaling) {
    json["loss_scale"] = s.scaling->scale;
    json["skipped_steps"] = s.scaling->skippedSteps;
  }
  for (const Setting& each : options.settings) json["settings"][each.name] = each.value;
  // A file's name need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace

Report::Report(const Options& options, int ranks)
    : options_(options),
      out_(tools::besides({options.csv, options.json, options.svg, options.report})),
      progress_(!options.quiet, STDERR_FILENO),
      run_(emptyRecord(options, ranks)),
      columns_(curveColumnsOf(options)) {}

void Report::open(int64_t firstStep) {
  begun_ = std::chrono::steady_clock::now();
  if (!options_.tensorboard.empty()) events_.emplace(options_.tensorboard, firstStep);
  if (options_.csv.empty()) return;
  const std::string before = curveBefore(options_.csv, firstStep, columns_);
  if (before.empty()) {
    csv_.emplace(options_.csv);
    csv_->write(curveHead(columns_));
    return;
  }
  tools::ReportFile(options_.csv).write(before);
  csv_.emplace(options_.csv, tools::ReportStream::Start::kAtItsEnd);
}

// main() finds out whether it arrived.
void Report::print(const std::string& text) {
  progress_.clear();
  std::fputs(text.c_str(), out_);
  std::fflush(out_);
}

// Whether it was written; that it was not is told, and the training goes on.
bool Report::keep(const std::function<void()>& writing) {
  try {
    writing();
    return true;
  } catch (const tools::CannotWrite& error) {
    progress_.clear();
    fmt::print(stderr, "weft-train: {}\n", error.what());
    isComplete_ = false;
    return false;
  }
}

double Report::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
}

void Report::head(const std::string& line) {
  if (!options_.quiet) print(fmt::format("# {}\n", line));
}

std::string Report::columnsOf(const StepReport& r,
                              const std::optional<Evaluation>& evaluation) const {
  std::string text;
  if (columns_.scalesLoss) text += fmt::format(",{:.17g},{}", r.lossScale, r.skippedSteps);
  if (!columns_.evaluates) return text;
  if (!evaluation) return text + ",,";
  text += fmt::format(",{:.17g},", evaluation->loss);
  if (evaluation->accuracy) text += fmt::format("{:.9g}", *evaluation->accuracy);
  if (run_.hasPerplexity) text += fmt::format("{:.9g}", std::exp(evaluation->loss));
  return text;
}

std::vector<Scalar> Report::scalarsOf(const StepReport& r,
                                      const std::optional<Evaluation>& evaluation) const {
  const double tokensPerSecond = run_.tokensPerStep / r.seconds;
  std::vector<Scalar> scalars{{"train/loss", r.loss},
                              {"train/grad_norm", r.gradientNorm},
                              {"train/lr", r.learningRate},
                              {"perf/tokens_per_s", tokensPerSecond},
                              {"perf/samples_per_s", run_.sequencesPerStep / r.seconds},
                              {"perf/teraflop_per_s", run_.teraflops(tokensPerSecond)},
                              {"perf/step_ms", r.seconds * 1e3},
                              {"comm/exposed_ms", r.exposedSeconds * 1e3}};
  if (run_.peakTeraflops > 0) scalars.push_back({"perf/mfu", run_.utilization(tokensPerSecond)});
  if (columns_.scalesLoss) {
    scalars.push_back({"train/loss_scale", r.lossScale});
    scalars.push_back({"train/skipped_steps", static_cast<double>(r.skippedSteps)});
  }
  if (!evaluation) return scalars;
  scalars.push_back({"valid/loss", evaluation->loss});
  if (evaluation->accuracy) scalars.push_back({"valid/accuracy", *evaluation->accuracy});
  if (run_.hasPerplexity) scalars.push_back({"valid/perplexity", std::exp(evaluation->loss)});
  return scalars;
}

void Report::addEvaluation(int64_t step, const Evaluation& found) {
  run_.evaluations.push_back({step, found, elapsed()});
  std::string more;
  if (found.accuracy) more = fmt::format(", accuracy {:.2f} %", 100 * *found.accuracy);
  if (run_.hasPerplexity) more = fmt::format(", perplexity {:.3f}", std::exp(found.loss));
  head(fmt::format("step {}: validation loss {:.4f}{}", step, found.loss, more));
}

void Report::add(const StepReport& r, const std::optional<Evaluation>& evaluation) {
  addToRecord(r);
  addToFiles(r, evaluation);
  addLine(r);
  if (!r.overflow.empty())
    head(fmt::format("step {}: skipped, as the gradient of {} overflowed at loss scale {:g}",
                     r.step, r.overflow, r.lossScale));
  if (evaluation) addEvaluation(r.step, *evaluation);
  progress_.show(progressOf(run_, options_.steps, options_.seconds));
}

void Report::addToRecord(const StepReport& r) {
  run_.steps.push_back(
      {r.step, r.loss, r.gradientNorm, r.learningRate, r.seconds, r.exposedSeconds, elapsed()});
  if (columns_.scalesLoss) run_.steps.back().scaling = {r.lossScale, r.skippedSteps};
}

// What cannot be written any more is told once, and closed.
void Report::addToFiles(const StepReport& r, const std::optional<Evaluation>& evaluation) {
  const auto writeLine = [&]() {
    csv_->write(fmt::format("{},{:.17g},{:.17g},{:.9g},{:.1f},{:.3f},{:.3f},{:.3f}{}\n", r.step,
                            r.loss, r.gradientNorm, r.learningRate, run_.tokensPerStep / r.seconds,
                            r.seconds * 1e3, r.exposedSeconds * 1e3, r.wireBytes,
                            columnsOf(r, evaluation)));
  };
  if (csv_ && !keep(writeLine)) csv_.reset();
  const auto writeScalars = [&]() { events_->write(r.step, scalarsOf(r, evaluation)); };
  if (events_ && !keep(writeScalars)) events_.reset();
}

void Report::addLine(const StepReport& r) {
  const double tokensPerSecond = run_.tokensPerStep / r.seconds;
  const double stepMs = r.seconds * 1e3, exposedMs = r.exposedSeconds * 1e3;
  if (options_.quiet) return;
  if (run_.steps.size() == 1) {
    print(fmt::format("{:>8} {:>9} {:>10} {:>10} {:>10} {:>9} {:>11} {:>8}\n", "step", "loss",
                      "grad_norm", "lr", "tokens/s", "step(ms)", "exposed(ms)", "wire B/p"));
  }
  if (r.step % options_.logEvery != 0 && r.step + 1 != options_.steps && r.stop == Stop::kNo)
    return;
  print(fmt::format("{:>8} {:>9.4f} {:>10.4f} {:>10.3g} {:>10.0f} {:>9.1f} {:>11.2f} {:>8.3f}\n",
                    r.step, r.loss, r.gradientNorm, r.learningRate, tokensPerSecond, stepMs,
                    exposedMs, r.wireBytes));
}

void Report::finish(Summary summary) {
  summary.steps = run_.steps.back().step + 1;
  summary.firstLoss = run_.steps.front().loss;
  summary.lastLoss = meanLossOfLastTenth(run_.steps);
  summary.elapsedSeconds = run_.steps.back().elapsedSeconds;
  summary.teraflops = run_.teraflops(summary.tokensPerSecond);
  if (run_.peakTeraflops > 0) summary.utilization = run_.utilization(summary.tokensPerSecond);
  if (!run_.evaluations.empty()) summary.validation = run_.evaluations.back().found;
  summary.scaling = run_.steps.back().scaling;
  if (!options_.json.empty())
    keep([&]() { tools::ReportFile(options_.json).write(jsonOf(summary, options_)); });
  if (!options_.svg.empty()) keep([&]() { drawLoss(summary); });
  if (!options_.report.empty()) keep([&]() { writePage(summary); });
  if (!options_.quiet) printSummary(summary);
}

void Report::finishWithoutSteps(const std::string& why) {
  const std::string files = filesOfSteps(options_);
  if (files.empty()) return head(why);
  progress_.clear();
  fmt::print(stderr, "weft-train: {}: not written, as they tell of steps made: {}\n", why, files);
}

void Report::printSummary(const Summary& summary) {
  print(fmt::format("# batches: {}\n", loadingInWords(summary.loading)));
  if (const auto& pipeline = summary.pipeline)
    print(fmt::format(
        "# pipeline: stages wait {:.1f} % of a step for each other; {:.1f} % by the "
        "schedule alone, if all took equally long, and {:.1f} % as their layers do not\n",
        100 * pipeline->idle, 100 * pipeline->ofSchedule, 100 * pipeline->ofUnequalRuns));
  if (summary.offload)
    print(fmt::format(
        "# offload: {:.1f} MB a step put away, {:.1f} MB read back, waited {:.2f} ms for; peak of "
        "resident memory {:.0f} MB\n",
        summary.offload->bytes / 1e6, summary.offload->readBytes / 1e6, summary.offload->waitMs,
        summary.peakResidentBytes / 1e6));
  if (summary.validation && summary.validation->accuracy)
    print(fmt::format("# accuracy {:.2f} % in the last evaluation\n",
                      100 * *summary.validation->accuracy));
  if (summary.scaling)
    print(fmt::format("# loss scale {:g} in the last step; {} steps were skipped\n",
                      summary.scaling->scale, summary.scaling->skippedSteps));
  print(fmt::format(
      "# loss {:.4f} -> {:.4f} (mean of the last 10 % of {} steps), {:.0f} tokens/s ({}), "
      "communication exposed {:.1f} %{}\n",
      summary.firstLoss, summary.lastLoss, summary.steps, summary.tokensPerSecond,
      teraflopsText(summary), 100 * summary.exposedMs / summary.stepMs,
      summary.weights ? fmt::format(", weights {:016x}", *summary.weights) : ""));
}

void Report::drawLoss(const Summary& summary) const {
  Line curve{"loss", {}};
  for (const StepRecord& each : run_.steps)
    curve.points.push_back({static_cast<double>(each.step), each.loss});
  std::vector<Line> lines{std::move(curve)};
  if (!run_.evaluations.empty()) lines.push_back({"validation", {}});
  for (const EvaluationRecord& each : run_.evaluations)
    lines.back().points.push_back({static_cast<double>(each.step), each.found.loss});
  writeSvg(options_.svg,
           {fmt::format("weft-train: {} on {} rank(s){}", options_.model, summary.ranks,
                        summary.failure.empty() ? "" : ", ended early"),
            "step", "nats a token", std::move(lines)});
}

void Report::writePage(const Summary& summary) const {
  const Options& o = options_;
  RunPage page{
      fmt::format("weft-train: {} on {} rank{}", o.model, summary.ranks,
                  summary.ranks == 1 ? "" : "s"),
      fmt::format("{}, {}, {}", nowText(), tools::machineText(), tools::versionOf("weft-train")),
      run_, summary, o.settings};
  if (!o.price.empty()) page.price = priceOf(o.price);
  if (o.targetLoss > 0) page.targetLoss = o.targetLoss;
  page.published = publishedJob(o.recipe);
  tools::ReportFile(o.report).write(htmlOf(page));
}

}  // namespace weft::train
