// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <weft/weft.hpp>

#include "perf/common/report_file.h"
#include "perf/weft-perf/report.h"
#include "tools/test/options.h"

namespace weft::test {

// nccom-test's file: "results", a list of objects whose keys are the table's titles. To each
// weft-test adds "op" and, where data was checked, "wrong"; and beside the list "config" and
// "errors".
class JsonReport {
 public:
  explicit JsonReport(const TestOptions& options);  // throws CannotWrite
  ~JsonReport();

  void row(const std::string& operation, const perf::Row& row);
  void error(const std::string& text, const ErrorInfo& error);
  void write();       // throws CannotWrite
  void writeSoFar();  // if the next write replaces it

 private:
  struct Document;
  const TestOptions& options_;
  tools::ReportFile file_;
  std::unique_ptr<Document> document_;
};

}  // namespace weft::test
