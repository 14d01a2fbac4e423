// SPDX-License-Identifier: Apache-2.0
#include "tools/test/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/test/columns.h"

namespace weft::test {
namespace {

std::string toText(const Cell& cell) {
  if (const auto* count = std::get_if<std::uint64_t>(&cell)) return fmt::format("{}", *count);
  if (const auto* figure = std::get_if<double>(&cell)) return fmt::format("{:.2f}", *figure);
  return std::get<std::string>(cell);
}

// One line, right-aligned under the titles, which are never cut.
template <class Text>
std::string lineOf(const std::vector<Column>& columns, Text text) {
  std::string line;
  for (const Column& column : columns) {
    line += fmt::format("{}{:>{}}", line.empty() ? "" : "    ", text(column),
                        std::max(column.width, column.title.size()));
  }
  return line;
}

std::string groupsText(const Groups& groups) {
  if (groups.empty()) return {};
  return fmt::format(" in {} group{} of {}", groups.size(), groups.size() == 1 ? "" : "s",
                     groups.front().size());
}

}  // namespace

void Table::head(const std::string& operation, const std::vector<perf::RankInfo>& ranks) {
  std::set<std::string> hosts;
  for (const perf::RankInfo& rank : ranks) hosts.insert(rank.host);
  fmt::print(out_, "# weft-test {}.{}.{}: {}, {} rank{}{} on {} host{}\n", WEFT_MAJOR, WEFT_MINOR,
             WEFT_PATCH, operation, ranks.size(), ranks.size() == 1 ? "" : "s",
             groupsText(options_.groups), hosts.size(), hosts.size() == 1 ? "" : "s");
  fmt::print(out_, "# GB/s: 2^30 bytes per second, as nccom-test's; weft-perf's are 10^9\n");
  titled_ = false;
}

void Table::row(const perf::Row& row) {
  const std::vector<Column> columns = columnsOf(options_, row);
  if (!titled_) {
    fmt::print(out_, "{}\n", lineOf(columns, [](const Column& column) { return column.title; }));
  }
  titled_ = true;
  fmt::print(out_, "{}\n",
             lineOf(columns, [](const Column& column) { return toText(column.cell); }));
  std::fflush(out_);
}

void Table::foot(const perf::Summary& summary) {
  fmt::print(out_, "Avg bus bandwidth:\t{:.4f}GB/s\n", inGibi(summary.averageBusBw()));
  if (summary.wrong > 0) fmt::print(out_, "{} errors found - test failed\n", summary.wrong);
  std::fflush(out_);
}

}  // namespace weft::test
