// SPDX-License-Identifier: Apache-2.0
#include "tools/train/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "perf/common/report_file.h"

namespace weft::train {
namespace {

constexpr double kWidth = 640, kHeight = 360, kLeft = 64, kRight = 16, kTop = 56, kBottom = 48;
constexpr std::array kColours = {"#1c7ed6", "#e8590c", "#2f9e44", "#9c5fe0"};

constexpr const char* kHead =
    R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}">
<style>
text {{ font: 12px sans-serif; fill: #24292f }}
.title {{ font-weight: bold }}
.grid {{ stroke: #d0d7de }}
polyline {{ fill: none; stroke-width: 2; stroke-linejoin: round }}
@media (prefers-color-scheme: dark) {{ text {{ fill: #d5dae0 }} .grid {{ stroke: #30363d }} }}
</style>
)";

// From a round number below the least value to one above the most, in at most eight round steps.
class Axis {
 public:
  Axis(double least, double most, double leastStep)
      : step(roundUp(std::max((most - least) / 8, leastStep))),
        first(std::floor(least / step) * step),
        last(std::max(std::ceil(most / step) * step, first + step)) {}

  // 0 at the first value, 1 at the last.
  double share(double value) const { return (value - first) / (last - first); }

  const double step, first, last;

 private:
  static double roundUp(double value) {
    const double power = std::pow(10, std::floor(std::log10(value)));
    for (const double digit : {1, 2, 5})
      if (value <= digit * power) return digit * power;
    return 10 * power;
  }
};

std::vector<double> valuesOf(const Plot& plot, double Point::*coordinate) {
  std::vector<double> values;
  for (const Line& line : plot.lines)
    for (const Point& point : line.points) values.push_back(point.*coordinate);
  return values;
}

// Steps and ranks are whole numbers.
Axis acrossOf(const Plot& plot) {
  const auto [least, most] = std::ranges::minmax(valuesOf(plot, &Point::x));
  return {least, most, 1};
}

Axis upOf(const Plot& plot) { return {0, std::ranges::max(valuesOf(plot, &Point::y)), 1e-9}; }

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot), x_(acrossOf(plot)), y_(upOf(plot)) {}

  std::string svg() {
    add(kHead, kWidth, kHeight);
    text(kLeft, 20, "start", plot_.title, "title");
    text((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", plot_.across);
    text(8, kTop - 10, "start", plot_.up);
    drawGrid();
    for (size_t i = 0; i < plot_.lines.size(); ++i) drawLine(i);
    return svg_ + "</svg>\n";
  }

 private:
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Arguments>(arguments)...);
  }
  void text(double x, double y, const char* anchor, const std::string& words,
            const char* kind = "label") {
    add("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", kind, x, y,
        anchor, words);
  }
  double across(double x) const { return kLeft + x_.share(x) * (kWidth - kLeft - kRight); }
  double down(double y) const {
    return kHeight - kBottom - y_.share(y) * (kHeight - kTop - kBottom);
  }

  void drawGrid() {
    for (double y = y_.first; y <= y_.last + y_.step / 2; y += y_.step) {
      add("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kLeft,
          kWidth - kRight, down(y), down(y));
      text(kLeft - 6, down(y) + 4, "end", fmt::format("{:.4g}", y));
    }
    for (double x = x_.first; x <= x_.last + x_.step / 2; x += x_.step)
      text(across(x), kHeight - kBottom + 18, "middle", fmt::format("{:.6g}", x));
  }

  void drawLine(size_t i) {
    const Line& line = plot_.lines[i];
    const char* colour = kColours[i % kColours.size()];
    const double left = kLeft + 180 * static_cast<double>(i);
    add("<rect x=\"{}\" y=\"30\" width=\"14\" height=\"4\" fill=\"{}\"/>\n", left, colour);
    text(left + 20, 36, "start", line.name);
    add("<polyline stroke=\"{}\" points=\"", colour);
    for (const Point& point : line.points) add("{:.1f},{:.1f} ", across(point.x), down(point.y));
    add("\"/>\n");
  }

  const Plot& plot_;
  const Axis x_, y_;
  std::string svg_;
};

}  // namespace

void writeSvg(const std::string& path, const Plot& plot) {
  tools::ReportFile(path).write(Drawing(plot).svg());
}

}  // namespace weft::train
