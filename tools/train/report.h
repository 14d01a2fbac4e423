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
#include "tools/train/curve_file.h"
#include "tools/train/options.h"
#include "tools/train/reports/event_file.h"
#include "tools/train/reports/progress_line.h"
#include "tools/train/reports/run_record.h"
#include "tools/train/reports/summary.h"
#include "tools/train/trainer.h"

namespace weft::train {

class Report {
 public:
  Report(const Options& options, int ranks);

  // Opens what is written step by step: the CSV file, in which what an earlier run has written of the
  // steps before this one is kept, and TensorBoard's, a new one. Throws tools::CannotWrite, and
  // Failure if another file is there.
  void open(int64_t firstStep);
  void head(const std::string& line);  // one line of comment
  // `evaluation`: of validation after it, if there was one.
  void add(const StepReport& report, const std::optional<Evaluation>& evaluation = {});
  // One after the last step, with which it could not be added.
  void addEvaluation(int64_t step, const Evaluation& found);
  // Completes `summary` with what was added, a step at least, prints it, writes the JSON file and the
  // page, and draws the curve.
  void finish(Summary summary);

  // Of a run that has made no step, and why: says which files are not written for that.
  void finishWithoutSteps(const std::string& why);
  // Was everything written? A full disk is reported at once, but does not end the training.
  bool isComplete() const { return isComplete_; }

 private:
  void print(const std::string& text);
  double elapsed() const;
  bool keep(const std::function<void()>& writing);
  void addToFiles(const StepReport& report, const std::optional<Evaluation>& evaluation);
  void addToRecord(const StepReport& report);
  void addLine(const StepReport& report);
  void printSummary(const Summary& summary);
  std::string columnsOf(const StepReport& report,
                        const std::optional<Evaluation>& evaluation) const;
  std::vector<Scalar> scalarsOf(const StepReport& report,
                                const std::optional<Evaluation>& evaluation) const;
  void drawLoss(const Summary& summary) const;
  void writePage(const Summary& summary) const;

  const Options& options_;
  std::FILE* out_;
  ProgressLine progress_;
  RunRecord run_;
  const CurveColumns columns_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::optional<tools::ReportStream> csv_;
  std::optional<EventFile> events_;
  bool isComplete_ = true;
};

}  // namespace weft::train
