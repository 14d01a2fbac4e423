// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "perf/weft-perf/json.h"
#include "perf/weft-perf/progress.h"
#include "perf/weft-perf/reporter.h"
#include "perf/weft-perf/table.h"

namespace weft::perf {

// weft-perf's: the table, the JSON file, and the progress line.
class FullReport final : public Reporter {
 public:
  FullReport(const Options& options, int argc, char** argv)
      : table_(tools::besides({options.json, options.trace}), options) {
    if (!options.json.empty()) json_.emplace(options, argc, argv);
  }

  void head(const std::vector<RankInfo>& ranks, const std::string& machine) override {
    table_.head(ranks, machine);
    if (json_) json_->head(ranks, machine);
  }
  void progress(const std::string& text) override { progress_.show(text); }
  void row(const Row& row) override {
    progress_.clear();
    table_.row(row);
    if (json_) json_->row(row);
  }
  void foot(const Summary& summary, const Memory& memory) override {
    table_.foot(summary, memory);
    if (!json_) return;
    json_->foot(summary, memory);
    json_->write();
  }
  void failed(const std::string& text, const ErrorInfo& error) override {
    progress_.clear();
    if (!json_) return;
    json_->error(text, error);
    json_->write();
  }

 private:
  Table table_;
  std::optional<JsonReport> json_;
  Progress progress_;
};

}  // namespace weft::perf
