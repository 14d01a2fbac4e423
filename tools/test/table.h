// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "perf/weft-perf/report.h"
#include "tools/test/options.h"

namespace weft::test {

// nccom-test's table, below two lines with '#' that say what it is of and in which units.
class Table {
 public:
  Table(std::FILE* out, const TestOptions& options) : out_(out), options_(options) {}

  void head(const std::string& operation, const std::vector<perf::RankInfo>& ranks);
  void row(const perf::Row& row);
  void foot(const perf::Summary& summary);

 private:
  std::FILE* out_;
  const TestOptions& options_;
  bool titled_ = false;
};

}  // namespace weft::test
