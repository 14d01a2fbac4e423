// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>
#include <weft/weft.hpp>

#include "perf/common/report_file.h"
#include "perf/weft-perf/options.h"
#include "perf/weft-perf/report.h"

namespace weft::perf {

// The report with nccl-tests' JSON keys, except that booleans are booleans and that of the
// environment only WEFT_* and NCCL_TESTS_* are stored, without secrets. It is written
// when the run ends, also by an error.
class JsonReport {
 public:
  // Throws CannotWrite.
  JsonReport(const Options& options, int argc, char** argv);
  ~JsonReport();

  void head(const std::vector<RankInfo>& ranks, const std::string& machine = {});
  void row(const Row& row);
  void foot(const Summary& summary, const Memory& memory);
  void error(const std::string& text, const ErrorInfo& error);
  void write();

 private:
  struct Document;
  const Options& options_;
  tools::ReportFile file_;
  std::unique_ptr<Document> document_;
};

}  // namespace weft::perf
