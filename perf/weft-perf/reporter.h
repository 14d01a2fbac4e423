// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>
#include <weft/weft.hpp>

#include "perf/weft-perf/report.h"

namespace weft::perf {

// Rank 0's voice: what a run tells whoever started it.
class Reporter {
 public:
  Reporter() = default;
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;
  virtual ~Reporter() = default;

  // `machine`: what the library says of it, or nothing.
  virtual void head(const std::vector<RankInfo>& ranks, const std::string& machine) = 0;
  virtual void progress(const std::string& text) = 0;
  virtual void row(const Row& row) = 0;
  virtual void foot(const Summary& summary, const Memory& memory) = 0;
  virtual void failed(const std::string& text, const ErrorInfo& error) = 0;
};

}  // namespace weft::perf
