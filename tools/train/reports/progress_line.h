// SPDX-License-Identifier: Apache-2.0
// A line at the foot of a terminal that says how far a run is.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tools/train/reports/run_record.h"

namespace weft::train {

// All rates are of all ranks together.
struct Progress {
  int64_t done = 0, steps = 0;
  double secondsLeft = 0;
  double loss = 0;
  double samplesPerSecond = 0, tokensPerSecond = 0, teraflops = 0;
  std::optional<double> utilization = {};  // of the peak, if that was told
  std::optional<LossScaling> scaling = {};
};

// After the last step of `run`, of which there is one at least, on the way to `steps` or to the end of
// `seconds` (0: of none). Rates are those of the last steps; what is left is expected to take as long as
// all that was done, but for the first step.
Progress progressOf(const RunRecord& run, int64_t steps, double seconds);

// As much of it as `columns` hold, what matters most first.
std::string progressText(const Progress& progress, size_t columns);

// Redraws it on a terminal, several times a second at most. Into a pipe or a file it writes nothing.
class ProgressLine {
 public:
  ProgressLine(bool wanted, int terminal);  // a descriptor
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const Progress& progress);
  void clear();  // before anything else is printed there

 private:
  using Clock = std::chrono::steady_clock;

  void write(const std::string& text) const;

  const int terminal_;
  const bool isOn_;
  bool isShown_ = false;
  Clock::time_point last_{};
};

}  // namespace weft::train
