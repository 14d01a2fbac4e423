// SPDX-License-Identifier: Apache-2.0
// The lines that scripts parse, character by character.
#include "tools/test/table.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tools/test/columns.h"

namespace weft::test {
using namespace test;
namespace {

class TableText : public testing::Test {
 protected:
  template <class Print>
  std::string textOf(Print print) {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* file = open_memstream(&text, &size);
    Table table(file, options_);
    print(table);
    std::fclose(file);
    const std::string result(text, size);
    std::free(text);
    return result;
  }

  static perf::Row rowOf(const char* collective, std::size_t bytes) {
    perf::Measurement measured;
    measured.iterations = {90e-6, 110e-6};
    measured.seconds = 100e-6;
    return {perf::makeProblem(perf::parseCollective(collective), perf::typeInfo(weftFloat32),
                              perf::allOps()[0], -1, 0, 2, bytes, false),
            measured, std::nullopt,
            "all_reduce: all-reduce ring+staged, 4 segment(s) of 65536 bytes"};
  }

  TestOptions options_;
};

TEST_F(TableText, IsNccomTests) {
  const perf::Row row = rowOf("all_reduce", 1 << 20);
  EXPECT_EQ(
      textOf([&](Table& table) { table.row(row); }),
      "     size(B)    count(elems)      type    time:avg(us)    algbw(GB/s)    busbw(GB/s)\n"
      "     1048576          262144      fp32          100.00           9.77           9.77\n");
}

TEST_F(TableText, TitlesComeOnceForEachOperation) {
  const perf::Row row = rowOf("all_reduce", 8);
  const std::string text = textOf([&](Table& table) {
    table.head("all_reduce", {perf::RankInfo{}, perf::RankInfo{}});
    table.row(row);
    table.row(row);
    table.head("all_gather", {perf::RankInfo{}});
    table.row(row);
  });
  std::size_t titles = 0;
  for (std::size_t at = 0; (at = text.find("size(B)", at)) != std::string::npos; ++at) ++titles;
  EXPECT_EQ(titles, 2u) << text;
  EXPECT_NE(text.find(": all_reduce, 2 ranks on 1 host\n# GB/s: 2^30 bytes per second"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(": all_gather, 1 rank on 1 host\n"), std::string::npos) << text;
}

TEST_F(TableText, HasTheColumnsThatAreAskedFor) {
  options_.stats = {"p50", "avg", "p99.9"};
  options_.showAlgorithm = options_.showSizes = true;
  std::string titles, cells;
  for (const Column& column : columnsOf(options_, rowOf("all_gather", 1 << 20))) {
    titles += column.title + ' ';
    if (const auto* number = std::get_if<std::uint64_t>(&column.cell)) {
      cells += std::to_string(*number) + ' ';
    }
    if (const auto* word = std::get_if<std::string>(&column.cell)) cells += *word + ' ';
  }
  EXPECT_EQ(titles,
            "size(B) count(elems) total_input_size(B) total_output_size(B) type time:p50(us) "
            "time:avg(us) time:p99.9(us) algbw(GB/s) busbw(GB/s) algorithm ");
  EXPECT_EQ(cells, "1048576 262144 524288 1048576 fp32 ring+staged ");
}

TEST_F(TableText, FootHasTheAverageAndWhatIsWrong) {
  perf::Summary summary;
  summary.add(rowOf("all_reduce", 1 << 20));
  EXPECT_EQ(textOf([&](Table& table) { table.foot(summary); }), "Avg bus bandwidth:\t9.7656GB/s\n");
  summary.wrong = 3;
  EXPECT_EQ(textOf([&](Table& table) { table.foot(summary); }),
            "Avg bus bandwidth:\t9.7656GB/s\n3 errors found - test failed\n");
}

}  // namespace
}  // namespace weft::test
