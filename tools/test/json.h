// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "perf/weft-perf/replaced_file.h"
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
  void error(const std::string& text);
  void write();  // what there is so far; throws CannotWrite

 private:
  struct Document;
  const TestOptions& options_;
  perf::ReplacedFile file_;
  std::unique_ptr<Document> document_;
};

}  // namespace weft::test
