// SPDX-License-Identifier: Apache-2.0
// The columns of a result, which are also the keys of its JSON, by nccom-test's names.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "perf/weft-perf/report.h"
#include "tools/test/options.h"

namespace weft::test {

using Cell = std::variant<std::uint64_t, double, std::string>;

struct Column {
  std::string title;
  std::size_t width;
  Cell cell;
};

// Those of one row, left to right.
std::vector<Column> columnsOf(const TestOptions& options, const perf::Row& row);

// 10^9 bytes per second in nccom-test's unit, which is 2^30.
double inGibi(double decimalGigabytes);

}  // namespace weft::test
