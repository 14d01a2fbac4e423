// SPDX-License-Identifier: Apache-2.0
#include "tools/train/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

constexpr size_t kWarmUpSteps = 2;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double meanOfLastTenth(const std::vector<double>& values) {
  const size_t count = std::max<size_t>(values.size() / 10, 1);
  const auto first = values.end() - static_cast<std::ptrdiff_t>(std::min(count, values.size()));
  return std::accumulate(first, values.end(), 0.0) / static_cast<double>(count);
}

[[noreturn]] void cannotWrite(const std::string& path) {
  throw Failure(Exit::kConfiguration,
                fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

void writeJson(const std::string& path, const Summary& s) {
  const nlohmann::ordered_json json = {
      {"ranks", s.ranks},
      {"threads", s.threads},
      {"steps", s.steps},
      {"first_loss", s.firstLoss},
      {"last_loss", s.lastLoss},
      {"sequences_per_s", s.sequencesPerSecond},
      {"tokens_per_s", s.tokensPerSecond},
      {"step_ms", s.stepMs},
      {"exposed_ms", s.exposedMs},
      {"wire_bytes_per_parameter", s.wireBytes},
      {"memory_bytes", s.memoryBytes},
      {"weights", fmt::format("{:016x}", s.weights)},
  };
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  if (!file.flush()) cannotWrite(path);
}

}  // namespace

void PaceMeter::add(const StepReport& report) {
  steps_.push_back(report.seconds);
  exposed_.push_back(report.exposedSeconds);
  wire_.push_back(report.wireBytes);
}

Pace PaceMeter::pace() const {
  const size_t skip = std::min(kWarmUpSteps, steps_.size() - std::min<size_t>(steps_.size(), 1));
  const auto from = static_cast<std::ptrdiff_t>(skip);
  return {median({steps_.begin() + from, steps_.end()}),
          median({exposed_.begin() + from, exposed_.end()}),
          median({wire_.begin() + from, wire_.end()})};
}

Report::Report(const Options& options, int ranks)
    : options_(options),
      tokensPerStep_(
          static_cast<double>(options.batch * options.accumulate * options.length * ranks)) {
  if (options.csv.empty()) return;
  csv_.reset(std::fopen(options.csv.c_str(), "w"));
  if (csv_ == nullptr) cannotWrite(options.csv);
  fmt::print(csv_.get(), "step,loss,grad_norm,lr,tokens_per_s,step_ms,exposed_ms,wire_bytes\n");
}

void Report::head(const std::string& line) const {
  if (!options_.quiet) fmt::print("# {}\n", line);
}

void Report::add(const StepReport& r) {
  losses_.push_back(r.loss);
  const double tokensPerSecond = tokensPerStep_ / r.seconds;
  const double stepMs = r.seconds * 1e3, exposedMs = r.exposedSeconds * 1e3;
  if (csv_ != nullptr) {
    fmt::print(csv_.get(), "{},{:.17g},{:.17g},{:.9g},{:.1f},{:.3f},{:.3f},{:.3f}\n", r.step,
               r.loss, r.gradientNorm, r.learningRate, tokensPerSecond, stepMs, exposedMs,
               r.wireBytes);
    std::fflush(csv_.get());  // whoever watches the curve sees each step
  }
  if (options_.quiet) return;
  if (r.step == 0) {
    fmt::print("{:>8} {:>9} {:>10} {:>10} {:>10} {:>9} {:>11} {:>8}\n", "step", "loss", "grad_norm",
               "lr", "tokens/s", "step(ms)", "exposed(ms)", "wire B/p");
  }
  if (r.step % options_.logEvery != 0 && r.step + 1 != options_.steps && !r.stop) return;
  fmt::print("{:>8} {:>9.4f} {:>10.4f} {:>10.3g} {:>10.0f} {:>9.1f} {:>11.2f} {:>8.3f}\n", r.step,
             r.loss, r.gradientNorm, r.learningRate, tokensPerSecond, stepMs, exposedMs,
             r.wireBytes);
  std::fflush(stdout);
}

void Report::finish(Summary summary) const {
  summary.firstLoss = losses_.front();
  summary.lastLoss = meanOfLastTenth(losses_);
  if (!options_.json.empty()) writeJson(options_.json, summary);
  if (options_.quiet) return;
  fmt::print(
      "# loss {:.4f} -> {:.4f} (mean of the last 10 % of {} steps), {:.0f} tokens/s, "
      "communication exposed {:.1f} %, weights {:016x}\n",
      summary.firstLoss, summary.lastLoss, summary.steps, summary.tokensPerSecond,
      100 * summary.exposedMs / summary.stepMs, summary.weights);
}

}  // namespace weft::train
