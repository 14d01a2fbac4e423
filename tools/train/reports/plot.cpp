// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "perf/common/report_file.h"
#include "tools/train/reports/html.h"
#include "tools/train/reports/words.h"

namespace weft::train {
namespace {

// In pixels; margins for what stands beside the axes.
struct Frame {
  double width, height, left, right, top, bottom;
  int mostSteps;  // of an axis
};
constexpr Frame kPicture{640, 360, 64, 16, 56, 48, 8}, kChart{480, 236, 58, 20, 30, 46, 5};
constexpr std::array kColours = {"#1c7ed6", "#e8590c", "#2f9e44", "#9c5fe0"};

constexpr const char* kHead =
    R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}">
<style>
text {{ font: 12px sans-serif; fill: #24292f }}
.title {{ font-weight: bold }}
.grid {{ stroke: #d0d7de }}
.level {{ stroke: #868e96; stroke-dasharray: 5 4 }}
polyline {{ fill: none; stroke-width: 2; stroke-linejoin: round }}
@media (prefers-color-scheme: dark) {{ text {{ fill: #d5dae0 }} .grid {{ stroke: #30363d }} }}
</style>
)";
constexpr const char* kHeadInPage =
    "<svg class=\"plot\" viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"{2}\">\n";

// From a round number below the least value to one above the most, in a few round steps.
class Axis {
 public:
  Axis(double least, double most, double leastStep, int mostSteps)
      : step(roundUp(std::max((most - least) / mostSteps, leastStep))),
        first(std::floor(least / step + 1e-9) * step),
        last(std::max(std::ceil(most / step - 1e-9) * step, first + step)) {}

  // 0 at the first value, 1 at the last.
  double share(double value) const { return (value - first) / (last - first); }
  std::vector<double> ticks() const {
    std::vector<double> all;
    const auto count = std::llround((last - first) / step);
    for (int64_t i = 0; i <= count; ++i) {
      const double value = first + static_cast<double>(i) * step;
      all.push_back(std::abs(value) < step * 1e-6 ? 0 : value);
    }
    return all;
  }

  const double step, first, last;

 private:
  static double roundUp(double value) {
    const double power = std::pow(10, std::floor(std::log10(value)));
    for (const double digit : {1, 2, 5})
      if (value <= digit * power * (1 + 1e-9)) return digit * power;
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
Axis acrossOf(const Plot& plot, const Frame& frame) {
  const auto [least, most] = std::ranges::minmax(valuesOf(plot, &Point::x));
  return {least, most, 1, frame.mostSteps};
}

// Values that are all the same are in the middle.
Axis upOf(const Plot& plot, const Frame& frame) {
  std::vector<double> values = valuesOf(plot, &Point::y);
  if (plot.level) values.push_back(*plot.level);
  const auto [least, most] = std::ranges::minmax(values);
  const double leastStep = most == 0 ? 1 : std::abs(most) * 1e-3;
  return {plot.isFromZero ? std::min(least, 0.0) : least, most, leastStep, frame.mostSteps};
}

class Drawing {
 public:
  Drawing(const Plot& plot, const Frame& frame)
      : plot_(plot), frame_(frame), x_(acrossOf(plot, frame)), y_(upOf(plot, frame)) {}

  std::string picture() {
    add(kHead, frame_.width, frame_.height);
    text(frame_.left, 20, "start", plot_.title, "title");
    text(8, frame_.top - 10, "start", plot_.up);
    for (size_t i = 0; i < plot_.lines.size(); ++i)
      addLegend(i, frame_.left + 180 * static_cast<double>(i), 36);
    return addRest();
  }

  std::string chart() {
    add(kHeadInPage, frame_.width, frame_.height,
        escaped(plot_.title.empty() ? plot_.up : plot_.title));
    text(8, 16, "start", plot_.up);
    if (plot_.lines.size() > 1)
      for (size_t i = 0; i < plot_.lines.size(); ++i)
        addLegend(i, frame_.left + 90 + 112 * static_cast<double>(i), 16);
    return addRest();
  }

 private:
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Arguments>(arguments)...);
  }
  void text(double x, double y, const char* anchor, const std::string& words,
            const char* kind = "label") {
    add("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", kind, x, y,
        anchor, escaped(words));
  }
  double across(double x) const {
    return frame_.left + x_.share(x) * (frame_.width - frame_.left - frame_.right);
  }
  double down(double y) const {
    return frame_.height - frame_.bottom -
           y_.share(y) * (frame_.height - frame_.top - frame_.bottom);
  }

  std::string addRest() {
    text((frame_.left + frame_.width - frame_.right) / 2, frame_.height - 10, "middle",
         plot_.across);
    addGrid();
    for (size_t i = 0; i < plot_.lines.size(); ++i) addLine(i);
    return svg_ + "</svg>\n";
  }

  void addRule(const char* kind, double y) {
    add("<line class=\"{}\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind, frame_.left,
        frame_.width - frame_.right, down(y), down(y));
  }

  void addGrid() {
    for (const double y : y_.ticks()) {
      addRule("grid", y);
      text(frame_.left - 6, down(y) + 4, "end", quantityText(y));
    }
    for (const double x : x_.ticks())
      text(across(x), frame_.height - frame_.bottom + 18, "middle", fmt::format("{:.6g}", x));
    if (plot_.level) addRule("level", *plot_.level);
  }

  void addLegend(size_t i, double left, double baseline) {
    add("<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"4\" fill=\"{}\"/>\n", left, baseline - 6,
        kColours[i % kColours.size()]);
    text(left + 20, baseline, "start", plot_.lines[i].name);
  }

  void addLine(size_t i) {
    const Line& line = plot_.lines[i];
    const char* colour = kColours[i % kColours.size()];
    add("<polyline stroke=\"{}\" points=\"", colour);
    for (const Point& point : line.points) add("{:.1f},{:.1f} ", across(point.x), down(point.y));
    add("\"/>\n");
    if (!line.isMarked && line.points.size() > 1) return;
    for (const Point& point : line.points)
      add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", across(point.x),
          down(point.y), colour);
  }

  const Plot& plot_;
  const Frame& frame_;
  const Axis x_, y_;
  std::string svg_;
};

}  // namespace

std::string plotSvg(const Plot& plot) { return Drawing(plot, kChart).chart(); }

std::string plotStyle() {
  return ".plot { display: block; width: 100%; height: auto }\n"
         ".plot text { font-size: 11.5px; fill: #5b6673 }\n"
         ".plot .grid { stroke: #e8ebef }\n"
         ".plot .level { stroke: #868e96; stroke-dasharray: 5 4 }\n"
         ".plot polyline { fill: none; stroke-width: 1.75; stroke-linejoin: round }\n";
}

void writeSvg(const std::string& path, const Plot& plot) {
  tools::ReportFile(path).write(Drawing(plot, kPicture).picture());
}

}  // namespace weft::train
