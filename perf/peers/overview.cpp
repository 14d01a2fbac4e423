// SPDX-License-Identifier: Apache-2.0
#include "overview.h"

#include <fmt/format.h>

#include <cmath>
#include <ostream>

#include "report.h"

namespace weft::peers {
namespace {

constexpr double kPeerLimit = 1.05;  // what rounds differ by
constexpr double kFloorLimit = 1.2;

// "0.62, worst 1.57 at 1M, 2 of 13 above 1.05"
std::string spreadText(const Spread& spread, double limit) {
  if (spread.points == 0) return "-";
  return fmt::format("**{:.2f}**, worst {:.2f} at {}; {} of {} above {}", spread.mean, spread.worst,
                     sizeText(spread.worstBytes), spread.above, spread.points, limit);
}

}  // namespace

Spread spreadOf(const Series& series, std::optional<Ratio> Summary::*which, double limit,
                std::uint64_t least) {
  Spread spread;
  double logs = 0;
  for (const auto& [bytes, point] : series.points) {
    const std::optional<Ratio> ratio = summarize(point).*which;
    if (bytes < least || !ratio) continue;
    ++spread.points;
    spread.above += ratio->median > limit;
    logs += std::log(ratio->median);
    if (ratio->median <= spread.worst) continue;
    spread.worst = ratio->median;
    spread.worstBytes = bytes;
  }
  if (spread.points > 0) spread.mean = std::exp(logs / static_cast<double>(spread.points));
  return spread;
}

void writeOverview(std::ostream& out, const std::vector<Measurement>& measurements) {
  out << "\n| ranks | collective | mode | any / best peer | own / best peer | own / floor from "
      << sizeText(kFloorFrom) << " |\n|---|---|---|---|---|---|\n";
  for (const Series& series : arrange(measurements))
    out << fmt::format(
        "| {} | {} | {} | {} | {} | {} |\n", series.ranks, collectiveName(series.collective),
        modeName(series.mode),
        spreadText(spreadOf(series, &Summary::anyToPeer, kPeerLimit), kPeerLimit),
        spreadText(spreadOf(series, &Summary::ownToPeer, kPeerLimit), kPeerLimit),
        spreadText(spreadOf(series, &Summary::ownToFloor, kFloorLimit, kFloorFrom), kFloorLimit));
}

}  // namespace weft::peers
