// SPDX-License-Identifier: Apache-2.0
#include "tools/health/heat_map.h"

#include <gtest/gtest.h>

#include <iterator>
#include <regex>
#include <string>
#include <vector>

namespace weft::health {
namespace {

// Links of 8 GB/s and 10 us.
Evidence alike(int ranks) {
  Evidence evidence;
  evidence.pairs = Matrix(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    evidence.members.push_back({"a-host-with-a-long-name", 0, rank, 100 + rank});
    for (int peer = 0; peer < ranks; ++peer)
      if (peer != rank) evidence.pairs.at(rank, peer) = {10, 8, 0};
  }
  evidence.ways.resize(evidence.members.size() * evidence.members.size(), "shm");
  return evidence;
}

std::vector<std::smatch> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  return {std::sregex_iterator(text.begin(), text.end(), regex), {}};
}

// The colour of the cell whose title begins so.
std::string cellOf(const std::string& svg, const std::string& title) {
  const auto found = matches(svg, ("fill='([^']*)' stroke='#bbb'><title>" + title).c_str());
  return found.empty() ? "none" : found[0][1].str();
}

// The colour beside these words of the scale.
std::string legendOf(const std::string& svg, const std::string& words) {
  const auto found =
      matches(svg, ("fill='([^']*)' stroke='#bbb'></rect>\n<text [^>]*>" + words + "<").c_str());
  return found.empty() ? "missing" : found[0][1].str();
}

TEST(HeatMapSvg, NoTextIsCutOff) {
  for (const int ranks : {1, 2, 3, 16, 24}) {
    const std::string svg = heatMapSvg(alike(ranks));
    const double width = std::stod(matches(svg, "width='(\\d+)'")[0][1]);
    const double height = std::stod(matches(svg, "height='(\\d+)'")[0][1]);
    for (const std::smatch& text : matches(
             svg, "<text x='(\\d+)' y='(\\d+)' font-size='(\\d+)' text-anchor='(\\w+)'>([^<]*)")) {
      const double room = text[4] == "start" ? width - std::stod(text[1]) : std::stod(text[1]);
      const double length = 0.6 * std::stod(text[3]) * static_cast<double>(text[5].length());
      EXPECT_LE(text[4] == "middle" ? length / 2 : length, room) << text[5] << ", " << ranks;
      EXPECT_LT(std::stod(text[2]), height);
    }
  }
}

TEST(HeatMapSvg, RowsAndColumnsHaveTheirRanks) {
  const std::string svg = heatMapSvg(alike(12));
  EXPECT_EQ(matches(svg, "text-anchor='middle'>11<").size(), 2u) << "a column of each panel";
  EXPECT_EQ(matches(svg, "text-anchor='end'>11<").size(), 2u) << "a row of each panel";
  EXPECT_EQ(matches(svg, "text-anchor='end'>a-host-with-a-").size(), 12u);
}

TEST(HeatMapSvg, TheScaleHasTheColoursOfTheCells) {
  Evidence evidence = alike(8);
  evidence.pairs.at(0, 1).gigabytes = 4;
  evidence.pairs.at(0, 2).gigabytes = 2;
  evidence.pairs.at(0, 3).gigabytes = 0.1;
  evidence.pairs.at(0, 4).wrong = 1;
  evidence.pairs.at(0, 5) = {};
  const std::string svg = heatMapSvg(evidence);
  EXPECT_EQ(cellOf(svg, "rank 1 to rank 0:"), legendOf(svg, "as usual or better"));
  EXPECT_EQ(cellOf(svg, "rank 0 to rank 1:"), legendOf(svg, "half"));
  EXPECT_EQ(cellOf(svg, "rank 0 to rank 2:"), legendOf(svg, "a quarter"));
  EXPECT_EQ(cellOf(svg, "rank 0 to rank 3:"), legendOf(svg, "an eighth or less"));
  EXPECT_EQ(cellOf(svg, "rank 0 to rank 4:"), legendOf(svg, "wrong data"));
  EXPECT_EQ(cellOf(svg, "rank 0 to rank 5:"), legendOf(svg, "not measured"));
}

}  // namespace
}  // namespace weft::health
