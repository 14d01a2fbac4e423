// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weft::topo {
namespace {

constexpr double kMargin = 24, kTitle = 56, kGap = 28, kDot = 11, kNic = 16, kRailStep = 22;
constexpr const char* kColors[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                   "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f"};

const char* colorOf(std::size_t rail) { return kColors[rail % std::size(kColors)]; }

struct Point {
  double x = 0;
  double y = 0;
};

class Drawing {
 public:
  explicit Drawing(const topology::Fabric& fabric)
      : fabric_(fabric),
        drawn_(std::min(fabric.nodes.size(), kMostDrawn)),
        radius_(std::max(70.0, static_cast<double>(fabric.mostRanksOfANode()) * (kDot + 2) * 2 /
                                   (2 * std::numbers::pi))),
        nodeWidth_(
            std::max(2 * radius_ + 60, static_cast<double>(fabric.rails.size()) * (kNic + 8) + 24)),
        nodeHeight_(2 * radius_ + 110) {}

  std::string draw() {
    for (std::size_t rail = 0; rail < fabric_.rails.size(); ++rail) drawRail(rail);
    for (std::size_t node = 0; node < drawn_; ++node) drawNode(node);
    return head() + body_ + "</svg>\n";
  }

 private:
  double left(std::size_t node) const {
    return kMargin + static_cast<double>(node) * (nodeWidth_ + kGap);
  }
  double width() const { return left(drawn_) - kGap + kMargin + 190; }
  double height() const {
    return kTitle + nodeHeight_ + kRailStep * static_cast<double>(fabric_.rails.size() + 1) +
           kMargin;
  }
  Point rankAt(std::size_t node, std::uint32_t rank) const {
    const double share = rank / static_cast<double>(fabric_.nodes[node].ranks);
    const double angle = 2 * std::numbers::pi * share - std::numbers::pi / 2;
    return {left(node) + nodeWidth_ / 2 + radius_ * std::cos(angle),
            kTitle + 40 + radius_ + radius_ * std::sin(angle)};
  }
  Point nicAt(std::size_t node, std::size_t rail) const {
    const double step = nodeWidth_ / static_cast<double>(fabric_.rails.size() + 1);
    return {left(node) + step * static_cast<double>(rail + 1), kTitle + nodeHeight_ - kNic};
  }
  double railY(std::size_t rail) const {
    return kTitle + nodeHeight_ + kRailStep * static_cast<double>(rail + 1);
  }

  std::string head() const {
    const std::size_t more = fabric_.nodes.size() - drawn_;
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        "<text x=\"{2}\" y=\"30\" font-size=\"16\">{3}{4}</text>\n",
        width(), height(), kMargin, escaped(fabric_.name.empty() ? "fabric" : fabric_.name),
        more == 0 ? "" : fmt::format(" ({} more nodes are not drawn)", more));
  }

  void line(Point a, Point b, const char* color, double thickness) {
    body_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"{:.1f}\"/>\n",
        a.x, a.y, b.x, b.y, color, thickness);
  }
  void label(Point at, const std::string& text, const char* anchor) {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at.x,
                         at.y, anchor, escaped(text));
  }

  void drawRail(std::size_t rail) {
    const topology::Rail& r = fabric_.rails[rail];
    const double end = left(drawn_) - kGap;
    line({kMargin, railY(rail)}, {end, railY(rail)}, colorOf(rail), 3);
    label({end + 8, railY(rail) + 4},
          fmt::format("{}: {:g} Gbit/s, {:g} us", r.name, r.speed.gbit, r.speed.us), "start");
  }

  void drawNode(std::size_t node) {
    const topology::FabricNode& n = fabric_.nodes[node];
    body_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"8\" "
        "fill=\"{}\" stroke=\"#555\"/>\n",
        left(node), kTitle, nodeWidth_, nodeHeight_, fabric_.memory ? "#eef3fa" : "#fafafa");
    label({left(node) + 10, kTitle + 18}, n.name, "start");
    if (fabric_.memory) label({left(node) + nodeWidth_ - 10, kTitle + 18}, "shared memory", "end");
    for (std::size_t rail = 0; rail < fabric_.rails.size(); ++rail) drawNic(node, rail);
    for (const topology::MeshLink& link : fabric_.mesh) {
      if (link.b < n.ranks) line(rankAt(node, link.a), rankAt(node, link.b), "#888", 1.2);
    }
    for (std::uint32_t rank = 0; rank < n.ranks; ++rank) drawRank(rankAt(node, rank), rank);
  }

  void drawNic(std::size_t node, std::size_t rail) {
    const Point at = nicAt(node, rail);
    for (const std::uint32_t rank : fabric_.rails[rail].ranks) {
      if (rank < fabric_.nodes[node].ranks) line(rankAt(node, rank), at, colorOf(rail), 0.8);
    }
    line(at, {at.x, railY(rail)}, colorOf(rail), 2);
    body_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"{}\"><title>{}</title>"
        "</rect>\n",
        at.x - kNic / 2, at.y - kNic / 2, kNic, kNic, colorOf(rail),
        escaped(fabric_.rails[rail].name));
  }

  void drawRank(Point at, std::uint32_t rank) {
    body_ += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"white\" stroke=\"#333\"/>\n", at.x,
        at.y, kDot);
    label({at.x, at.y + 4}, fmt::format("{}", rank), "middle");
  }

  const topology::Fabric& fabric_;
  const std::size_t drawn_;
  const double radius_;
  const double nodeWidth_;
  const double nodeHeight_;
  std::string body_;
};

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

std::string drawSvg(const topology::Fabric& fabric) { return Drawing(fabric).draw(); }

}  // namespace weft::topo
