// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/plot.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "perf/common/report_file.h"
#include "tests/temporary_folder.h"

namespace weft::train {
namespace {

using test::TemporaryFolder;

std::string drawn(const Plot& plot) {
  const TemporaryFolder folder;
  writeSvg(folder / "plot.svg", plot);
  std::ifstream file(folder / "plot.svg");
  return {std::istreambuf_iterator<char>(file), {}};
}

// How often `part` is in `text`.
size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Plot, DrawsEachPointOfEachLineWithinTheAxes) {
  const std::string svg = drawn(
      {"title", "step", "loss", {{"one", {{0, 5.5}, {100, 2}}}, {"two", {{0, 0}, {100, 6}}}}});
  EXPECT_NE(svg.find("points=\"64.0,77.3 624.0,226.7 \""), std::string::npos) << svg;
  EXPECT_NE(svg.find("points=\"64.0,312.0 624.0,56.0 \""), std::string::npos) << svg;
  EXPECT_EQ(count(svg, "<polyline"), 2u);
  for (const char* word : {">title<", ">step<", ">loss<", ">one<", ">two<", ">100<", ">6<"})
    EXPECT_NE(svg.find(word), std::string::npos) << word;
}

TEST(Plot, WholeNumbersAcrossHaveNoFractions) {
  const std::string svg = drawn({"", "ranks", "", {{"", {{1, 10}, {2, 18.5}, {4, 30}}}}});
  for (const char* tick : {">1<", ">2<", ">3<", ">4<"})
    EXPECT_NE(svg.find(tick), std::string::npos) << tick;
  EXPECT_EQ(svg.find(">1.5<"), std::string::npos);
}

TEST(Plot, OnePointIsAPictureToo) {
  EXPECT_EQ(count(drawn({"", "", "", {{"", {{7, 0}}}}}), "nan"), 0u);
}

TEST(Plot, AFolderThatIsNotThereIsNamed) {
  try {
    writeSvg("/nowhere/plot.svg", {"", "", "", {{"", {{0, 1}}}}});
    FAIL() << "written";
  } catch (const tools::CannotWrite& failure) {
    EXPECT_NE(std::string(failure.what()).find("'/nowhere/plot.svg': No such file"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace weft::train
