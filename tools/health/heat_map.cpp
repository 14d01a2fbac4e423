// SPDX-License-Identifier: Apache-2.0
#include "tools/health/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "tools/health/summary.h"

namespace weft::health {
namespace {

constexpr int kMostRanksOfText = 64;
constexpr int kCell = 18, kMargin = 10, kLeft = 130, kTop = 124, kGap = 50;  // pixels
constexpr int kLeastWidth = 660;
constexpr const char *kWrong = "#000", *kUnknown = "#ccc";

// How a link does against the median of its kind: 1 is usual, less is worse.
double standing(const Link& link, const KindOfLink& kind, Measure measure) {
  if (measure == Measure::Latency)
    return link.microseconds > 0 ? kind.microseconds.middle / link.microseconds : 0;
  return kind.gigabytes.middle > 0 ? link.gigabytes / kind.gigabytes.middle : 0;
}

char sign(const Link& link, double standing) {
  if (link.wrong > 0) return '!';
  if (standing > 0.7) return '.';
  return standing >= 0.5 ? 'o' : standing >= 0.25 ? 'O' : '#';
}

// From white, as usual or better, over orange to dark red, an eighth of the usual.
std::string colour(double standing) {
  const double badness = std::clamp(-std::log2(std::max(standing, 1e-3)) / 3, 0.0, 1.0);
  return fmt::format("rgb({:.0f},{:.0f},{:.0f})", 255 - 100 * badness * badness,
                     250 - 230 * badness, 240 - 230 * badness);
}

std::string colour(const Link& link, const KindOfLink& kind, Measure measure) {
  if (link.wrong > 0) return kWrong;
  const bool known = measure == Measure::Latency ? link.microseconds > 0 : link.gigabytes > 0;
  return known ? colour(standing(link, kind, measure)) : kUnknown;
}

std::string cell(int x, int y, const std::string& fill, const std::string& title = {}) {
  return fmt::format(
      "<rect x='{}' y='{}' width='{}' height='{}' fill='{}' stroke='#bbb'>{}</rect>\n", x, y, kCell,
      kCell, fill, title.empty() ? "" : "<title>" + title + "</title>");
}

std::string text(int x, int y, int size, const char* anchor, const std::string& words) {
  return fmt::format("<text x='{}' y='{}' font-size='{}' text-anchor='{}'>{}</text>\n", x, y, size,
                     anchor, words);
}

// What the colours mean, in the colours themselves.
std::string scale() {
  const std::pair<std::string, std::string> steps[] = {
      {colour(1), "as usual or better"},    {colour(0.5), "half"},  {colour(0.25), "a quarter"},
      {colour(0.125), "an eighth or less"}, {kWrong, "wrong data"}, {kUnknown, "not measured"}};
  std::string svg;
  int x = kMargin;
  for (const auto& [fill, words] : steps) {
    svg += cell(x, 52, fill) + text(x + kCell + 5, 65, 11, "start", words);
    x += kCell + 21 + static_cast<int>(6 * words.size());
  }
  return svg;
}

std::string panel(const Evidence& evidence, Measure measure, int left) {
  const auto kinds = summarize(evidence);
  const int ranks = evidence.pairs.ranks();
  std::string svg =
      text(left, kTop - 24, 14, "start", measure == Measure::Latency ? "Latency" : "Bandwidth");
  for (int rank = 0; rank < ranks; ++rank) {
    svg += text(left + rank * kCell + kCell / 2, kTop - 6, 9, "middle", fmt::format("{}", rank));
    svg += text(left - 6, kTop + rank * kCell + 13, 9, "end", fmt::format("{}", rank));
  }
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from == to) continue;
      const Link& link = evidence.pairs.at(from, to);
      const KindOfLink& kind = kinds.at(kindOf(evidence, from, to));
      svg +=
          cell(left + to * kCell, kTop + from * kCell, colour(link, kind, measure),
               fmt::format("rank {} to rank {}: {:.3g} GB/s, {:.3g} us{}", from, to, link.gigabytes,
                           link.microseconds, link.wrong > 0 ? ", WRONG DATA" : ""));
    }
  }
  return svg;
}

std::string hosts(const Evidence& evidence) {
  std::string svg;
  for (int rank = 0; rank < evidence.pairs.ranks(); ++rank) {
    const Member& member = evidence.members[static_cast<std::size_t>(rank)];
    svg += text(kLeft - 26, kTop + rank * kCell + 13, 11, "end", member.host.substr(0, 14));
  }
  return svg;
}

}  // namespace

std::string heatMapText(const Evidence& evidence) {
  const int ranks = evidence.pairs.ranks();
  if (ranks < 2 || ranks > kMostRanksOfText) return {};
  const auto kinds = summarize(evidence);
  std::string text =
      "Links, a row for each sender (. as usual, o slower, O less than half, # less "
      "than a quarter, ! wrong data)\n";
  for (int from = 0; from < ranks; ++from) {
    fmt::format_to(std::back_inserter(text), "  {:>20} {:>3} ",
                   evidence.members[static_cast<std::size_t>(from)].host.substr(0, 20), from);
    for (int to = 0; to < ranks; ++to) {
      if (from == to) {
        text += " \\";
        continue;
      }
      const Link& link = evidence.pairs.at(from, to);
      const KindOfLink& kind = kinds.at(kindOf(evidence, from, to));
      // Small differences in latency matter less than in bandwidth: hence the root.
      const double worst = std::min(standing(link, kind, Measure::Bandwidth),
                                    std::sqrt(standing(link, kind, Measure::Latency)));
      text += {' ', sign(link, worst)};
    }
    text += '\n';
  }
  return text;
}

std::string heatMapSvg(const Evidence& evidence) {
  const int side = evidence.pairs.ranks() * kCell;
  const int width = std::max(kLeft + 2 * side + kGap + kMargin, kLeastWidth);
  return fmt::format(
             "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' "
             "viewBox='0 0 {0} {1}' font-family='sans-serif'>\n"
             "<rect width='100%' height='100%' fill='white'/>\n",
             width, kTop + side + kMargin) +
         text(kMargin, 22, 15, "start",
              fmt::format("weft-health: links of {} ranks", evidence.pairs.ranks())) +
         text(kMargin, 41, 11, "start",
              "A row for each sender, a column for each receiver; against the median of links of "
              "the same kind:") +
         scale() + hosts(evidence) + panel(evidence, Measure::Bandwidth, kLeft) +
         panel(evidence, Measure::Latency, kLeft + side + kGap) + "</svg>\n";
}

}  // namespace weft::health
