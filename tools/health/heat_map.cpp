// SPDX-License-Identifier: Apache-2.0
#include "tools/health/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "tools/health/summary.h"

namespace weft::health {
namespace {

constexpr int kMostRanksOfText = 64;
constexpr int kCell = 18, kLeft = 110, kTop = 70, kGap = 60;  // pixels

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

// From white, as usual or better, over orange to dark red, an eighth of the usual; black: wrong.
std::string colour(const Link& link, double standing) {
  if (link.wrong > 0) return "#000";
  const double badness = std::clamp(-std::log2(std::max(standing, 1e-3)) / 3, 0.0, 1.0);
  return fmt::format("rgb({:.0f},{:.0f},{:.0f})", 255 - 100 * badness * badness,
                     250 - 230 * badness, 240 - 230 * badness);
}

std::string panel(const Evidence& evidence, Measure measure, int left) {
  const auto kinds = summarize(evidence);
  const int ranks = evidence.pairs.ranks();
  std::string svg = fmt::format("<text x='{}' y='40' font-size='14'>{}</text>\n", left,
                                measure == Measure::Latency ? "Latency" : "Bandwidth");
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from == to) continue;
      const Link& link = evidence.pairs.at(from, to);
      const double as = standing(link, kinds.at(kindOf(evidence, from, to)), measure);
      fmt::format_to(std::back_inserter(svg),
                     "<rect x='{}' y='{}' width='{}' height='{}' fill='{}' stroke='#bbb'>"
                     "<title>rank {} to rank {}: {:.3g} GB/s, {:.3g} us{}</title></rect>\n",
                     left + to * kCell, kTop + from * kCell, kCell, kCell, colour(link, as), from,
                     to, link.gigabytes, link.microseconds, link.wrong > 0 ? ", WRONG DATA" : "");
    }
  }
  return svg;
}

std::string labels(const Evidence& evidence) {
  std::string svg;
  for (int rank = 0; rank < evidence.pairs.ranks(); ++rank) {
    const Member& member = evidence.members[static_cast<std::size_t>(rank)];
    fmt::format_to(std::back_inserter(svg), "<text x='{}' y='{}' text-anchor='end'>{} {}</text>\n",
                   kLeft - 6, kTop + rank * kCell + 13, member.host.substr(0, 14), rank);
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
      // A little more of latency is no news; hence the power.
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
  return fmt::format(
             "<svg xmlns='http://www.w3.org/2000/svg' width='{}' height='{}' "
             "font-family='sans-serif' font-size='11'>\n"
             "<rect width='100%' height='100%' fill='white'/>\n"
             "<text x='10' y='20' font-size='14'>weft-health: senders down, receivers "
             "across; white is usual, red is slow, black is wrong data</text>\n",
             std::max(kLeft + 2 * side + kGap + 20, 640), kTop + side + 20) +
         labels(evidence) + panel(evidence, Measure::Bandwidth, kLeft) +
         panel(evidence, Measure::Latency, kLeft + side + kGap) + "</svg>\n";
}

}  // namespace weft::health
