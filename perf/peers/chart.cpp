// SPDX-License-Identifier: Apache-2.0
#include "chart.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <set>
#include <string>

#include "report.h"

namespace weft::peers {
namespace {

constexpr double kPageWidth = 960;
constexpr double kMaxPanelWidth = 480;
constexpr double kPanelHeight = 190;
constexpr double kLegendHeight = 44;
constexpr double kLeft = 50, kRight = 12, kTop = 24, kBottom = 38;  // around a plot
constexpr double kTickSpace = 38;                                   // between labels of sizes
// Ratios to the floor that a plot shows; a line beyond leaves the plot.
constexpr double kLeastRatio = 0.25;
constexpr double kMostRatio = 32;

// Each at least 3:1 against white and against near-black.
constexpr std::array kColours = {"#1c7ed6", "#e8590c", "#2f9e44", "#9c5fe0",
                                 "#d6336c", "#b08900", "#0c9aa8", "#7a7f87"};

constexpr const char* kStyle = R"(<style>
text { font: 11px sans-serif; fill: #24292f }
.title { font-weight: bold }
.grid { stroke: #d0d7de } .floor { stroke: #57606a; stroke-width: 1.5 }
polyline { fill: none; stroke-linejoin: round }
@media (prefers-color-scheme: dark) {
  text { fill: #d5dae0 } .grid { stroke: #30363d } .floor { stroke: #9aa4af }
}
</style>
)";

// Whose measurements make one line: a form of weft, or all configurations of a library.
std::string lineOf(const std::string& contender) {
  return isWeft(contender) ? contender : libraryOf(contender);
}

class Chart {
 public:
  Chart(std::ostream& out, const std::vector<Measurement>& measurements)
      : out_(out), all_(arrange(measurements)) {
    std::set<std::uint64_t> sizes;
    for (const Measurement& m : measurements) sizes.insert(m.bytes);
    sizes_.assign(sizes.begin(), sizes.end());
    for (const std::string& name : contenderNames(measurements)) {
      if (lines_.empty() || lines_.back() != lineOf(name)) lines_.push_back(lineOf(name));
    }
  }

  void write() {
    std::set<int> columns;
    std::set<std::pair<Collective, Mode>> rows;
    for (const Series& series : all_) {
      columns.insert(series.ranks);
      rows.insert({series.collective, series.mode});
    }
    panelWidth_ = std::min(
        kMaxPanelWidth, kPageWidth / static_cast<double>(std::max<std::size_t>(1, columns.size())));
    const double height = kLegendHeight + kPanelHeight * static_cast<double>(rows.size());
    fmt::print(out_,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\"",
               kPageWidth, height);
    fmt::print(out_, " height=\"{}\">\n<!-- SPDX-License-Identifier: Apache-2.0 -->\n{}", height,
               kStyle);
    writeLegend();
    for (const Series& series : all_) {
      const auto column = std::distance(columns.begin(), columns.find(series.ranks));
      const auto row = std::distance(rows.begin(), rows.find({series.collective, series.mode}));
      writePanel(series, panelWidth_ * static_cast<double>(column),
                 kLegendHeight + kPanelHeight * static_cast<double>(row));
    }
    out_ << "</svg>\n";
  }

 private:
  double plotWidth() const { return panelWidth_ - kLeft - kRight; }
  static double plotHeight() { return kPanelHeight - kTop - kBottom; }

  // Where in a plot.
  double across(std::uint64_t bytes) const {
    const double least = std::log2(static_cast<double>(sizes_.front()));
    const double span = std::log2(static_cast<double>(sizes_.back())) - least;
    return span == 0 ? 0 : plotWidth() * (std::log2(static_cast<double>(bytes)) - least) / span;
  }
  static double down(double ratio) {
    return plotHeight() * std::log2(kMostRatio / ratio) / std::log2(kMostRatio / kLeastRatio);
  }

  // Weft's lines are thick, the libraries' thin and broken.
  std::string strokeOf(std::size_t line) const {
    const std::string colour = kColours[line % kColours.size()];
    const bool thick = isWeft(lines_[line]);
    return fmt::format(
        "stroke=\"{}\" {}", colour,
        thick ? "stroke-width=\"2.4\"" : "stroke-width=\"1.5\" stroke-dasharray=\"6 2\"");
  }

  void writeLegend() {
    const double step = kPageWidth / static_cast<double>(std::max<std::size_t>(1, lines_.size()));
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      const double x = kLeft / 2 + step * static_cast<double>(line);
      fmt::print(out_, "<line x1=\"{:.0f}\" x2=\"{:.0f}\" y1=\"14\" y2=\"14\" {}/>", x, x + 24,
                 strokeOf(line));
      fmt::print(out_, "<text x=\"{:.0f}\" y=\"18\">{}</text>\n", x + 30, lines_[line]);
    }
    fmt::print(out_,
               "<text x=\"{:.0f}\" y=\"36\">Time over that of the floor program. Lower is better; "
               "a line that leaves a plot at its top is beyond {}.</text>\n",
               kLeft / 2, kMostRatio);
  }

  void writePanel(const Series& series, double x, double y) {
    fmt::print(out_, "<g transform=\"translate({:.1f} {:.1f})\">\n", x + kLeft, y + kTop);
    fmt::print(out_, "<text class=\"title\" x=\"0\" y=\"-6\">{}, {} ranks, {}</text>\n",
               collectiveName(series.collective), series.ranks, modeName(series.mode));
    writeGrid();
    // A nested picture cuts off what leaves it.
    fmt::print(out_, "<svg width=\"{:.1f}\" height=\"{:.1f}\">\n", plotWidth(), plotHeight());
    for (std::size_t line = 0; line < lines_.size(); ++line) writeLine(series, line);
    out_ << "</svg>\n</g>\n";
  }

  void writeGrid() {
    for (double tick = kLeastRatio; tick <= kMostRatio; tick *= 2) {
      fmt::print(out_, "<line class=\"{}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
                 tick == 1 ? "floor" : "grid", plotWidth(), down(tick), down(tick));
      fmt::print(out_, "<text x=\"-6\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                 down(tick) + 4, tick);
    }
    fmt::print(out_,
               "<text transform=\"translate(-34 {:.1f}) rotate(-90)\" text-anchor=\"middle\">"
               "time / floor</text>\n",
               plotHeight() / 2);
    fmt::print(out_, "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">bytes</text>\n",
               plotWidth() / 2, plotHeight() + 29);
    double last = -kTickSpace;
    for (const std::uint64_t size : sizes_) {
      if (across(size) - last < kTickSpace) continue;
      last = across(size);
      fmt::print(out_, "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", last,
                 plotHeight() + 16, sizeText(size));
    }
  }

  void writeLine(const Series& series, std::size_t line) {
    const auto isMine = [&](const std::string& name) { return lineOf(name) == lines_[line]; };
    std::string points;
    for (const auto& [bytes, point] : series.points) {
      const auto toFloor = ratio(fastest(point, isMine), fastest(point, isFloor));
      if (toFloor) points += fmt::format("{:.1f},{:.1f} ", across(bytes), down(toFloor->median));
    }
    if (points.empty()) return;
    fmt::print(out_, "<polyline {} points=\"{}\"/>\n", strokeOf(line), points);
  }

  std::ostream& out_;
  const std::vector<Series> all_;
  std::vector<std::uint64_t> sizes_;
  std::vector<std::string> lines_;
  double panelWidth_ = 0;
};

}  // namespace

void writeChart(std::ostream& out, const std::vector<Measurement>& measurements) {
  Chart(out, measurements).write();
}

}  // namespace weft::peers
