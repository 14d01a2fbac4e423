// SPDX-License-Identifier: Apache-2.0
// Lines over two axes, as a picture.
#pragma once

#include <string>
#include <vector>

namespace weft::train {

struct Point {
  double x, y;  // x is a whole number, y is not negative
};

struct Line {
  std::string name;  // in the legend
  std::vector<Point> points;
};

struct Plot {
  std::string title;
  std::string across, up;  // what the axes count
  std::vector<Line> lines;
};

// Writes an SVG, legible on light and dark pages. There is a point at least, and no text needs
// escapes. Throws tools::CannotWrite.
void writeSvg(const std::string& path, const Plot& plot);

}  // namespace weft::train
