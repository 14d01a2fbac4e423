// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "perf/weft-perf/options.h"
#include "perf/weft-perf/report.h"

namespace weft::perf {

// The report in nccl-tests' format, which scripts parse: its head, columns, widths and foot. Lines
// that it does not have start with '#'.
class Table {
 public:
  Table(std::FILE* out, const Options& options) : out_(out), options_(options) {}

  // `machine`: what the library says of it, or nothing.
  void head(const std::vector<RankInfo>& ranks, const std::string& machine = {});
  void row(const Row& row);
  void foot(const Summary& summary, const Memory& memory);

 private:
  void comment(const char* indent, const std::string& text);
  void settings();
  void columns();
  std::string figures(const Problem& problem, const std::optional<Measurement>& measurement) const;
  std::string extraFigures(const Measurement& measurement) const;

  std::FILE* out_;
  const Options& options_;
};

}  // namespace weft::perf
