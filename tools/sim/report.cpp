// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "perf/weft-perf/numbers.h"

namespace weft::simulator {
namespace {

using Json = nlohmann::ordered_json;

std::string linksOf(const Options& options, const Cluster& cluster, const Row& row) {
  std::string links;
  const std::size_t most = std::min(options.links, row.result.loads.size());
  for (std::size_t i = 0; i < most; ++i) {
    const sim::Load& load = row.result.loads[i];
    links += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", cluster.network.nameOf(load.resource),
                         100 * load.share);
  }
  return links;
}

std::string boundOf(const Row& row) {
  if (row.bound.ns() <= 0) return fmt::format("{:>10} {:>6}", "-", "-");
  return fmt::format("{:>10} {:>5.1f}%", perf::fitted(row.bound.ns() / 1e3, 9),
                     100 * row.shareOfBound());
}

std::string intervalOf(const Options& options, const Row& row) {
  if (options.sigma <= 0) return "";
  return fmt::format(" {:>9} {:>9}", perf::fitted(row.lowNs / 1e3, 9),
                     perf::fitted(row.highNs / 1e3, 9));
}

const char* reasonOf(sim::Unfolded why) {
  switch (why) {
    case sim::Unfolded::NotAsked:
      return "--unfolded";
    case sim::Unfolded::Different:
      return "its nodes differ, or its ranks in speed";
    case sim::Unfolded::Observed:
      return "--trace";
    case sim::Unfolded::Cores:
      return "ranks share cores";
    default:
      return "the op lists of its ranks differ by more than a shift";
  }
}

Json jsonOf(const sim::Load& load, const Cluster& cluster) {
  return {{"link", cluster.network.nameOf(load.resource)},
          {"carried_bytes", load.bytes},
          {"rate_gbytes_per_s", cluster.network.rateOf(load.resource)},
          {"busy_share", load.share}};
}

Json jsonOf(const Options& options, const Cluster& cluster, const Row& row) {
  Json json{{"size_bytes", row.bytes},
            {"count_elements", row.count},
            {"algorithm", row.algorithm},
            {"plan_hash", fmt::format("{:016x}", row.hash)},
            {"segments", row.segments},
            {"time_ns", row.result.ns},
            {"algbw_gbytes_per_s", row.algbw()},
            {"busbw_gbytes_per_s", row.busbw()},
            {"cut_bound_ns", row.bound.cutNs},
            {"flow_bound_ns", row.bound.flowNs},
            {"bound_share", row.shareOfBound()},
            {"simulated_ranks", row.result.simulated},
            {"last_segment_spread", row.result.evened},
            {"messages", row.result.messages},
            {"events", row.result.events},
            {"slowest_rank", row.result.slowest},
            {"simulation_s", row.seconds}};
  if (row.result.unfolded != sim::Unfolded::No)
    json["unfolded_because"] = reasonOf(row.result.unfolded);
  if (!row.tooLarge.empty()) json["no_communicator_because"] = row.tooLarge;
  if (options.sigma > 0) {
    json["interval_5_percent_ns"] = row.lowNs;
    json["interval_95_percent_ns"] = row.highNs;
  }
  for (const sim::Load& load : row.result.loads) {
    if (json["busiest_links"].size() == options.links) break;
    json["busiest_links"].push_back(jsonOf(load, cluster));
  }
  return json;
}

}  // namespace

std::string headOf(const Options& options, const Cluster& cluster) {
  const sim::Network& network = cluster.network;
  return fmt::format(
      "# {} on {} ({}): {} ranks on {} nodes; machine: {}\n"
      "# {:>11} {:>12} {:>9}{} {:>8} {:>10} {:>6} {:>6}  {:<34} {}\n",
      options.collective->name, network.fabric().name, options.topology, network.ranks(),
      network.nodes(), cluster.measured, "size (B)", "count", "time (us)",
      options.sigma > 0 ? "   5 %      95 %     " : "", "busbw", "bound (us)", "share", "ranks",
      "algorithm (ops of rank 0)", "busiest links");
}

std::string lineOf(const Options& options, const Cluster& cluster, const Row& row) {
  std::string line = fmt::format(
      "  {:>11} {:>12} {:>9}{} {:>8} {} {:>6}  {:<34} {}\n", row.bytes, row.count,
      perf::fitted(row.result.ns / 1e3, 9), intervalOf(options, row), perf::fitted(row.busbw(), 8),
      boundOf(row), row.result.simulated, fmt::format("{} ({:016x})", row.algorithm, row.hash),
      linksOf(options, cluster, row));
  if (row.result.evened) line += "  # its last segment was spread over all chunks (--exact)\n";
  if (!row.tooLarge.empty())
    line += fmt::format("  # arrival slots of this call alone: {}\n", row.tooLarge);
  return line;
}

std::string jsonOf(const Options& options, const Cluster& cluster, const std::vector<Row>& rows,
                   const std::vector<Choice>& choices) {
  const sim::Network& network = cluster.network;
  Json json{{"collective", options.collective->name},
            {"topology", options.topology},
            {"fabric", network.fabric().name},
            {"machine", cluster.measured},
            {"nodes", network.nodes()},
            {"ranks", network.ranks()},
            {"datatype", options.type.name},
            {"message_ns", options.messageNs}};
  if (options.sigma > 0) {
    json["jitter_seed"] = options.seed;
    json["jitter_sigma"] = options.sigma;
    json["draws"] = options.draws;
  }
  json["rows"] = Json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    json["rows"].push_back(jsonOf(options, cluster, rows[i]));
    if (!choices.empty()) json["rows"].back()["choice"] = jsonOf(choices[i]);
  }
  return json.dump(2) + "\n";
}

}  // namespace weft::simulator
