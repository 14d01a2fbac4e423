// SPDX-License-Identifier: Apache-2.0
// Lines over two axes, as a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace weft::train {

struct Point {
  double x, y;  // x is a whole number
};

struct Line {
  std::string name;  // in the legend
  std::vector<Point> points;
  bool isMarked = false;  // a dot at each point
};

struct Plot {
  std::string title;       // "": none
  std::string across, up;  // what the axes count
  std::vector<Line> lines;
  bool isFromZero = true;            // the axis upwards, else from near the least value
  std::optional<double> level = {};  // a dashed line across
};

// An element svg for a page, whose style sheet has the fonts and colours (plotStyle()). There is a
// point at least, and all are finite. Any text is escaped.
std::string plotSvg(const Plot& plot);
std::string plotStyle();

// Writes an SVG of its own, legible on light and dark pages. Throws tools::CannotWrite.
void writeSvg(const std::string& path, const Plot& plot);

}  // namespace weft::train
