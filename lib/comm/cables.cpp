// SPDX-License-Identifier: Apache-2.0
#include "comm/cables.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "comm/open_transport.h"
#include "comm/pair_timing.h"
#include "plan/arrivals.h"
#include "transports/gather.h"

namespace weft::comm {
namespace {

// Trees of few hops need no more; what a message costs its rank is not told apart from its latency.
constexpr std::uint32_t kTreeRounds = 2;
constexpr WayTimes kUnmeasured{.latencyNs = 5e3, .bytesPerNs = 12.5};  // 100 Gbit/s

using AllTimes = std::vector<std::vector<WayTimes>>;  // by rank and peer

// Trees over the cables that live, which are alike in a mesh.
std::shared_ptr<const forest::Links> treesOf(const Core::Basis& basis, const WayTimes& cable) {
  forest::Graph graph;
  graph.ranks = basis.ranks;
  graph.nodeOf.assign(basis.ranks, 0);
  for (std::uint32_t a = 0; a < basis.ranks; ++a)
    for (std::uint32_t b = 0; b < basis.ranks; ++b)
      if (a != b && !basis.selection.lost.contains(std::minmax(a, b)))
        graph.links.push_back({a, b, cable.bytesPerNs, cable.latencyNs});
  forest::Links links;
  const forest::Limits limits{.rounds = kTreeRounds, .messageNs = cable.latencyNs};
  if (!forest::Links::make(std::move(graph), limits, &links).ok()) return nullptr;
  return std::make_shared<const forest::Links>(std::move(links));
}

double medianOf(std::vector<double> all) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

// The cables, or the ways around those that are lost: alike, but for what else the machine did.
WayTimes typicalOf(const AllTimes& times, const TransportSelection& selection, bool lost) {
  std::vector<double> latencies, rates;
  for (std::uint32_t a = 0; a < times.size(); ++a)
    for (std::uint32_t b = 0; b < times.size(); ++b)
      if (a != b && selection.lost.contains(std::minmax(a, b)) == lost) {
        latencies.push_back(times[a][b].latencyNs);
        rates.push_back(times[a][b].bytesPerNs);
      }
  return {medianOf(latencies), medianOf(rates)};
}

plan::Cables pricesOf(const Core::Basis& basis, const WayTimes& cable, const WayTimes& around) {
  plan::Cables prices;
  prices.mostPlaces = basis.ranks;
  prices.latencyNs = cable.latencyNs;
  for (std::uint32_t a = 0; a < basis.ranks; ++a) {
    prices.places.push_back(a);
    for (std::uint32_t b = 0; b < basis.ranks; ++b) {
      const bool isLost = basis.selection.lost.contains(std::minmax(a, b));
      prices.bytesPerNs.push_back(a == b ? 0 : (isLost ? around : cable).bytesPerNs);
    }
  }
  return prices;
}

bool isMeasured(const WayTimes& way) {
  return std::isfinite(way.bytesPerNs) && way.bytesPerNs > 0 && std::isfinite(way.latencyNs) &&
         way.latencyNs >= 0;
}

// Every rank's, of all its peers.
bool areMeasured(const AllTimes& times) {
  for (std::size_t a = 0; a < times.size(); ++a) {
    if (times[a].size() != times.size()) return false;
    for (std::size_t b = 0; b < times.size(); ++b)
      if (a != b && !isMeasured(times[a][b])) return false;
  }
  return true;
}

// A power of two away from what the trees were grown with: that changes no bit of what decides where
// they grow, so they need as many arrival slots.
WayTimes nearest(const WayTimes& cable) {
  const double steps = std::round(std::log2(cable.bytesPerNs / kUnmeasured.bytesPerNs));
  return {cable.latencyNs, kUnmeasured.bytesPerNs * std::exp2(steps)};
}

}  // namespace

void settleTrees(const Core::Basis& basis, plan::Tuning* tuning) {
  tuning->links = nullptr;
  if (!basis.selection.lost.empty() && isMesh(basis.names, basis.selection))
    tuning->links = treesOf(basis, kUnmeasured);
}

Status timeCables(const transport::TransportSetup& setup, Deadline deadline, Core::Parts* parts) {
  plan::Tuning& tuning = parts->tuning;
  if (tuning.links == nullptr) return {};
  const Deadline enough = Deadline::in(deadline.pollTimeoutMs() / 4);
  AllTimes times;
  WEFT_TRY(transport::gatherLists(
      setup, {}, timeWays(*parts->transport, setup.rank, setup.ranks, enough), &times));
  tuning.links = nullptr;
  if (!areMeasured(times)) {
    logInfo("the ways between ranks could not be measured, so none forwards for others");
    return {};
  }
  const WayTimes cable = typicalOf(times, parts->selection, false);
  const WayTimes around = typicalOf(times, parts->selection, true);
  logInfo("cables carry ", std::llround(cable.bytesPerNs * 1e3),
          " MB/s, the ways around lost ones ", std::llround(around.bytesPerNs * 1e3));
  plan::Tuning planned = tuning;
  planned.links = treesOf(*parts, nearest(cable));
  if (planned.links == nullptr || plan::arrivalsPerPeer(planned) > setup.layout.regions().perPeer)
    return {};
  tuning.links = planned.links;
  tuning.costs.cables = pricesOf(*parts, cable, around);
  tuning.costs.between.reset();  // each pair has a way of its own
  return {};
}

}  // namespace weft::comm
