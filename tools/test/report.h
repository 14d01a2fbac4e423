// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "perf/weft-perf/progress.h"
#include "perf/weft-perf/reporter.h"
#include "tools/test/json.h"
#include "tools/test/table.h"

namespace weft::test {

// Rank 0's: the tables, the JSON file, and the progress line.
class Report final : public perf::Reporter {
 public:
  explicit Report(const TestOptions& options);  // throws CannotWrite

  // What comes next is of this operation.
  void operation(const std::string& name) { operation_ = name; }

  void head(const std::vector<perf::RankInfo>& ranks, const std::string& machine) override;
  void progress(const std::string& text) override;
  void row(const perf::Row& row) override;
  void foot(const perf::Summary& summary, const perf::Memory& memory) override;
  void failed(const std::string& text, const ErrorInfo& error) override;
  void finish();  // after the last operation

 private:
  bool interactive_;
  std::string operation_;
  Table table_;
  std::optional<JsonReport> json_;
  perf::Progress progress_;
};

}  // namespace weft::test
