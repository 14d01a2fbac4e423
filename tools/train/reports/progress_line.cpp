// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tools/train/reports/words.h"

namespace weft::train {
namespace {

constexpr std::chrono::milliseconds kBetween{100};
constexpr size_t kUsualColumns = 80, kRecentSteps = 10;
constexpr const char* kErase = "\r\x1b[K";

size_t columnsOf(int terminal) {
  winsize size{};
  const bool isKnown = ::ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return isKnown ? size.ws_col : kUsualColumns;
}

}  // namespace

Progress progressOf(const RunRecord& run, int64_t steps, double seconds) {
  const StepRecord &first = run.steps.front(), &last = run.steps.back();
  const size_t recent = std::min(run.steps.size(), kRecentSteps);
  double took = 0;
  for (size_t i = run.steps.size() - recent; i < run.steps.size(); ++i)
    took += run.steps[i].seconds;
  const double stepsPerSecond = static_cast<double>(recent) / took;
  const double pace = run.steps.size() == 1 ? last.elapsedSeconds
                                            : (last.elapsedSeconds - first.elapsedSeconds) /
                                                  static_cast<double>(run.steps.size() - 1);
  Progress progress{last.step + 1, steps, pace * static_cast<double>(steps - last.step - 1),
                    last.loss};
  if (seconds > 0)
    progress.secondsLeft =
        std::min(progress.secondsLeft, std::max(seconds - last.elapsedSeconds, 0.0));
  progress.samplesPerSecond = stepsPerSecond * run.sequencesPerStep;
  progress.scaling = last.scaling;
  progress.tokensPerSecond = stepsPerSecond * run.tokensPerStep;
  progress.teraflops = run.teraflops(progress.tokensPerSecond);
  if (run.peakTeraflops > 0) progress.utilization = run.utilization(progress.tokensPerSecond);
  return progress;
}

std::string progressText(const Progress& p, size_t columns) {
  const double percent = 100 * static_cast<double>(p.done) / static_cast<double>(p.steps);
  std::vector<std::string> parts{fmt::format("{} of {} steps ({:.0f} %)", p.done, p.steps, percent),
                                 fmt::format("{} left", durationText(p.secondsLeft)),
                                 fmt::format("loss {:.4f}", p.loss)};
  if (p.scaling)
    parts.push_back(
        fmt::format("scale {:g}, {} skipped", p.scaling->scale, p.scaling->skippedSteps));
  parts.push_back(fmt::format("{} tokens/s", quantityText(p.tokensPerSecond)));
  parts.push_back(fmt::format("{} samples/s", quantityText(p.samplesPerSecond)));
  parts.push_back(fmt::format("{:.3g} TFLOP/s", p.teraflops));
  if (p.utilization) parts.push_back(fmt::format("MFU {:.1f} %", 100 * *p.utilization));
  std::string text;
  for (const std::string& part : parts) {
    const std::string separator = text.empty() ? "" : ", ";
    if (text.size() + separator.size() + part.size() >= columns) break;
    text.append(separator).append(part);
  }
  return text;
}

ProgressLine::ProgressLine(bool wanted, int terminal)
    : terminal_(terminal), isOn_(wanted && ::isatty(terminal) == 1) {}

void ProgressLine::show(const Progress& progress) {
  const Clock::time_point now = Clock::now();
  if (!isOn_ || (isShown_ && now - last_ < kBetween)) return;
  last_ = now;
  isShown_ = true;
  write(kErase + progressText(progress, columnsOf(terminal_)));
}

void ProgressLine::clear() {
  if (isShown_) write(kErase);
  isShown_ = false;
}

// A terminal that has gone away takes nothing, and nothing is lost by that.
void ProgressLine::write(const std::string& text) const {
  static_cast<void>(!::write(terminal_, text.data(), text.size()));
}

}  // namespace weft::train
