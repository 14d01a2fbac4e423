// SPDX-License-Identifier: Apache-2.0
#include "tools/test/report.h"

namespace weft::test {

Report::Report(const TestOptions& options)
    : interactive_(options.interactive), table_(tools::besides({options.json()}), options) {
  if (!options.json().empty()) json_.emplace(options);
}

void Report::head(const std::vector<perf::RankInfo>& ranks, const std::string&) {
  table_.head(operation_, ranks);
}

void Report::progress(const std::string& text) {
  if (interactive_) progress_.show(text);
}

void Report::row(const perf::Row& row) {
  progress_.clear();
  table_.row(row);
  if (json_) json_->row(operation_, row);
}

void Report::foot(const perf::Summary& summary, const perf::Memory&) {
  table_.foot(summary);
  if (json_) json_->writeSoFar();
}

void Report::finish() {
  if (json_) json_->write();
}

void Report::failed(const std::string& text, const ErrorInfo& error) {
  progress_.clear();
  if (!json_) return;
  json_->error(text, error);
  json_->write();
}

}  // namespace weft::test
