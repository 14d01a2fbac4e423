// SPDX-License-Identifier: Apache-2.0
// The CSV file of a run, one line a step, which a run that is resumed continues.
#pragma once

#include <cstdint>
#include <string>

#include "tools/train/options.h"

namespace weft::train {

// What a run has beside what all have.
struct CurveColumns {
  bool scalesLoss = false, evaluates = false, classifies = false;
};

CurveColumns curveColumnsOf(const Options& options);

// The first line.
std::string curveHead(CurveColumns columns);

// What such a file holds of the steps before `step`, with its head; nothing if there is none, it is
// no regular file, or no step comes before. A line that was cut off is left out. Throws Failure if
// the file is something else.
std::string curveBefore(const std::string& path, int64_t step, CurveColumns columns);

}  // namespace weft::train
