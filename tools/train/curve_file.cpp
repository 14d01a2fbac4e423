// SPDX-License-Identifier: Apache-2.0
#include "tools/train/curve_file.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tools/train/failure.h"

namespace weft::train {

CurveColumns curveColumnsOf(const Options& options) {
  return {options.params == Params::kFloat16, evaluatesSometimes(options), options.classifies};
}

std::string curveHead(CurveColumns columns) {
  return std::string("step,loss,grad_norm,lr,tokens_per_s,step_ms,exposed_ms,wire_bytes") +
         (columns.scalesLoss ? ",loss_scale,skipped_steps" : "") +
         (columns.evaluates ? ",valid_loss" : "") +
         (!columns.evaluates   ? "\n"
          : columns.classifies ? ",valid_accuracy\n"
                               : ",valid_perplexity\n");
}

std::string curveBefore(const std::string& path, int64_t step, CurveColumns columns) {
  std::error_code error;
  if (step == 0 || !std::filesystem::is_regular_file(path, error)) return {};
  std::ifstream file(path);
  std::string line, kept = curveHead(columns);
  if (!std::getline(file, line)) return {};
  if (line + '\n' != kept) {
    throw Failure(Exit::kData,
                  fmt::format("{} is no curve of weft-train, to which this resumed run would add: "
                              "line 1 is '{}', not '{}'; name another file as --csv",
                              path, line.substr(0, 80), kept.substr(0, kept.size() - 1)));
  }
  while (std::getline(file, line) && !file.eof()) {
    int64_t number = std::numeric_limits<int64_t>::max();
    std::from_chars(line.data(), line.data() + line.size(), number);
    if (number < step) kept += line + '\n';
  }
  return kept;
}

}  // namespace weft::train
