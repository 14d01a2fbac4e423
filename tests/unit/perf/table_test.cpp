// SPDX-License-Identifier: Apache-2.0
// The lines that scripts parse, character by character.
#include "perf/weft-perf/table.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace weft::perf {
namespace {

class TableText : public testing::Test {
 protected:
  TableText() { options_.collective = &parseCollective("all_reduce"); }

  // What `print` writes, without the first `skip` lines.
  template <class Print>
  std::string textOf(Print print, int skip = 0) {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* file = open_memstream(&text, &size);
    Table table(file, options_);
    print(table);
    std::fclose(file);
    std::string result(text, size);
    free(text);
    for (; skip > 0; --skip) result.erase(0, result.find('\n') + 1);
    return result;
  }

  Problem problem(std::size_t bytes) const {
    return makeProblem(*options_.collective, typeInfo(weftFloat32), allOps()[0], -1, 0, 2, bytes,
                       true);
  }

  static Measurement measured(double seconds, std::optional<std::uint64_t> wrong) {
    Measurement measurement;
    measurement.seconds = seconds;
    measurement.wrong = wrong;
    return measurement;
  }

  Options options_;
};

TEST_F(TableText, Row) {
  const Row row{problem(1 << 20), measured(123.456e-6, 0), measured(0.0123456, 12), {}};
  EXPECT_EQ(textOf([&](Table& table) { table.row(row); }),
            "     1048576        262144     float     sum      -1   123.46    8.49    8.49       0"
            "  12345.6    0.08    0.08      12\n");
}

TEST_F(TableText, RowWithoutCheckAndWithoutInPlace) {
  const Row row{problem(8), measured(1e-6, std::nullopt), std::nullopt, {}};
  EXPECT_EQ(textOf([&](Table& table) { table.row(row); }),
            "           8             2     float     sum      -1     1.00    0.01    0.01     N/A"
            "      N/A     N/A     N/A     N/A\n");
}

TEST_F(TableText, Head) {
  RankInfo rank{};
  rank.pid = 4242;
  std::snprintf(rank.host, sizeof(rank.host), "node7");
  std::snprintf(rank.processor, sizeof(rank.processor), "Some CPU");
  rank.shared = 2u << 20;
  EXPECT_EQ(
      textOf([&](Table& table) { table.head({rank}); }, 1),
      "# Collective test starting: all_reduce_perf\n"
      "# nThread 1 nGpus 1 minBytes 33554432 maxBytes 33554432 step: 1048576(bytes) warmup iters: "
      "1 "
      "iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0\n"
      "# Further warmup calls, up to 52 of each size in 0.5 s: -w N makes N alone\n"
      "#\n"
      "# Using devices\n"
      "#  Rank  0 Group  0 Pid   4242 on      node7 device  0 [host] Some CPU\n"
      "# Library memory per rank: shared 2.00 MB | plans 0.00 B | other 0.00 B | Total  2.00 MB\n"
      "#\n"
      "#                                                              out-of-place                 "
      "   "
      "   in-place          \n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     "
      "time "
      "  algbw   busbw  #wrong \n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             "
      "(us) "
      " (GB/s)  (GB/s)         \n");
}

TEST_F(TableText, Foot) {
  Summary summary;
  summary.add({problem(1 << 20), measured(100e-6, 0), measured(200e-6, 0), {}});
  const auto print = [&](Table& table) { table.foot(summary, {}); };
  EXPECT_EQ(textOf(print),
            "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 7.86432 \n#\n"
            "# Collective test concluded: all_reduce_perf\n#\n");
  EXPECT_TRUE(summary.passed());
  summary.requiredBusBw = 10;
  summary.wrong = 3;
  EXPECT_FALSE(summary.passed());
  EXPECT_EQ(textOf(print).substr(0, 76),
            "# Out of bounds values : 3 FAILED\n# Avg bus bandwidth    : 7.86432 FAILED\n#\n");
}

TEST_F(TableText, MoreColumns) {
  options_.perIteration = true;
  options_.percentiles = true;
  Measurement measurement = measured(2e-6, 0);
  measurement.iterations = {1e-6, 2e-6, 3e-6};
  const Row row{problem(8), measurement, std::nullopt, {}};
  EXPECT_EQ(
      textOf([&](Table& table) { table.row(row); }),
      "           8             2     float     sum      -1     2.00    0.00    0.00       0"
      "     1.00     3.00     3.00    40.82     2.00     3.00"
      "      N/A     N/A     N/A     N/A      N/A      N/A      N/A      N/A      N/A      N/A\n");
  options_.skippedIterations = 1;
  EXPECT_NE(textOf([&](Table& table) {
              table.row(row);
            }).find("     2.00     3.00     3.00    20.00     2.00     3.00"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::perf
