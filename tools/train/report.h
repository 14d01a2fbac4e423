// SPDX-License-Identifier: Apache-2.0
// What a run prints and writes. Only rank 0 has one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tools/train/options.h"
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
  double stepMs = 0;
  double exposedMs = 0;
  double wireBytes = 0;    // that a rank moves in a step, for each parameter
  double memoryBytes = 0;  // of the shard of rank 0: weights, gradients and state
  uint64_t weights = 0;    // fingerprint
};

class Report {
 public:
  // Opens the CSV file. Throws Failure if it cannot.
  Report(const Options& options, int ranks);

  void head(const std::string& line) const;  // one line of comment
  void add(const StepReport& report);
  // Completes `summary` with the losses, prints it and writes the JSON file.
  void finish(Summary summary) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  const Options& options_;
  double tokensPerStep_;
  std::unique_ptr<std::FILE, Close> csv_;
  std::vector<double> losses_;
};

}  // namespace weft::train
