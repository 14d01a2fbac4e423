// SPDX-License-Identifier: Apache-2.0
// What a run prints and writes. Only rank 0 has one.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "perf/common/report_file.h"
#include "tools/train/options.h"
#include "tools/train/plot.h"
#include "tools/train/reports/event_file.h"
#include "tools/train/reports/progress_line.h"
#include "tools/train/reports/run_record.h"
#include "tools/train/trainer.h"

namespace weft::train {

// Median step and exposed communication of one rank, without its first steps, which are slower.
struct Pace {
  double stepSeconds = 0;
  double exposedSeconds = 0;
  double wireBytes = 0;  // a parameter
};

class PaceMeter {
 public:
  void add(const StepReport& report);
  Pace pace() const;
  bool empty() const { return steps_.empty(); }
  size_t steps() const { return steps_.size(); }

 private:
  std::vector<double> steps_;
  std::vector<double> exposed_;
  std::vector<double> wire_;
};

// The figures of a whole run.
struct Summary {
  int ranks = 1;
  int threads = 1;
  int64_t steps = 0;
  double firstLoss = 0;
  double lastLoss = 0;            // mean of the last tenth of the steps
  double sequencesPerSecond = 0;  // of all ranks together, from the median step
  double tokensPerSecond = 0;
  double teraflops = 0;                    // per second, of all ranks together
  std::optional<double> utilization = {};  // of the peak, if that was told
  double stepMs = 0;
  double exposedMs = 0;
  double wireBytes = 0;    // that a rank moves in a step, for each parameter
  double memoryBytes = 0;  // of the shard of rank 0: weights, gradients and state
  double loadMs = 0;       // that preparing the batches of a step took rank 0's thread
  double loadWaitMs = 0;   // of it, what the step waited for
  uint64_t weights = 0;    // fingerprint
  std::optional<double> validationLoss = {};  // the last one
};

class Report {
 public:
  Report(const Options& options, int ranks);

  // Opens what is written step by step: the CSV file, in which what an earlier run has written of the
  // steps before this one is kept, and TensorBoard's, a new one. Throws tools::CannotWrite, and
  // Failure if another file is there.
  void open(int64_t firstStep);
  void head(const std::string& line);  // one line of comment
  // `evaluation`: the loss of validation after it, if there was one.
  void add(const StepReport& report, std::optional<double> evaluation = {});
  // Completes `summary` with the losses, prints it, writes the JSON file and draws the curve.
  void finish(Summary summary);
  // Was everything written? A full disk is reported at once, but does not end the training.
  bool isComplete() const { return isComplete_; }

 private:
  void print(const std::string& text);
  double elapsed() const;
  bool keep(const std::function<void()>& writing);
  void addToFiles(const StepReport& report, std::optional<double> evaluation);
  void addToRecord(const StepReport& report, std::optional<double> evaluation);
  void addLine(const StepReport& report);
  void addEvaluation(int64_t step, double loss);
  void printSummary(const Summary& summary);
  std::string columnsOf(std::optional<double> evaluation) const;
  std::vector<Scalar> scalarsOf(const StepReport& report, std::optional<double> evaluation) const;
  void drawLoss(int ranks) const;

  const Options& options_;
  std::FILE* out_;
  ProgressLine progress_;
  RunRecord run_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::optional<tools::ReportStream> csv_;
  std::optional<EventFile> events_;
  bool isComplete_ = true;
};

}  // namespace weft::train
