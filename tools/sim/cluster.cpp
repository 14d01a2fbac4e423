// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>

#include "formats/read.h"
#include "sim/wiring.h"
#include "topology/fabric_file.h"
#include "tune/calibrate.h"
#include "tune/machine_file.h"

namespace weft::simulator {
namespace {

// Where the nodes are described, for errors of the whole.
std::size_t lineOfNodes(const std::string& file) {
  std::ifstream in(file);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.rfind("nodes", line.find_first_not_of(" \t")) != line.npos) return number;
  }
  return number;
}

Status wrong(const Place& place, const std::string& why) {
  return Status::error(Code::InvalidArgument,
                       fmt::format("{}:{}: {}", place.topology, lineOfNodes(place.topology), why));
}

// The file's nodes, or so many like its first one, and the first ranks of each.
Status readNodes(const Place& place, topology::Fabric* fabric) {
  WEFT_TRY(topology::readFabric(place.topology, fabric));
  if (place.nodes != 0) {
    const std::uint32_t ranks = fabric->nodes[0].ranks;
    const bool alike = std::ranges::all_of(
        fabric->nodes, [&](const topology::FabricNode& node) { return node.ranks == ranks; });
    if (!alike) return wrong(place, "its nodes differ in size, so --nodes cannot repeat them");
    fabric->nodes.clear();
    for (std::uint32_t i = 0; i < place.nodes; ++i)
      fabric->nodes.push_back({fmt::format("node{}", i), ranks});
  }
  if (place.ranksOfNode > fabric->mostRanksOfANode())
    return wrong(place, fmt::format("its nodes have {} ranks at most, not {}",
                                    fabric->mostRanksOfANode(), place.ranksOfNode));
  for (topology::FabricNode& node : fabric->nodes)
    if (place.ranksOfNode != 0) node.ranks = std::min(node.ranks, place.ranksOfNode);
  const std::uint32_t most = fabric->mostRanksOfANode();
  std::erase_if(fabric->mesh, [&](const topology::MeshLink& link) { return link.b >= most; });
  for (topology::Rail& rail : fabric->rails)
    std::erase_if(rail.ranks, [&](std::uint32_t rank) { return rank >= most; });
  std::erase_if(fabric->rails, [](const topology::Rail& rail) { return rail.ranks.empty(); });
  return {};
}

// What joins the ranks of a node without memory in common. Pairs without a cable of a node by itself
// have their part of its rails.
plan::Cables cablesOf(const Place& place, const sim::Network& network,
                      const std::vector<std::uint32_t>& ranks, bool oneHost) {
  const topology::Fabric& fabric = network.fabric();
  plan::Cables cables;
  cables.messageNs = place.messageNs;
  cables.mostPlaces = fabric.mostRanksOfANode();
  for (const std::uint32_t rank : ranks) cables.places.push_back(network.localRankOf(rank));
  for (std::uint32_t a = 0; a < cables.mostPlaces; ++a)
    for (std::uint32_t b = 0; b < cables.mostPlaces; ++b) {
      auto speed = a == b ? std::nullopt : fabric.inside(std::min(a, b), std::max(a, b));
      if (!speed && oneHost && a != b) speed = fabric.outside(a);
      cables.bytesPerNs.push_back(speed ? speed->gbit / 8 : 0);
      if (speed) cables.latencyNs = std::max(cables.latencyNs, speed->us * 1e3);
    }
  return cables;
}

// What these ranks agree on. Their nodes are numbered as they come.
plan::Tuning tuningOf(const Place& place, const Cluster& cluster,
                      const std::vector<std::uint32_t>& ranks) {
  const sim::Network& network = cluster.network;
  const topology::Fabric& fabric = network.fabric();
  std::map<std::uint32_t, std::uint32_t> nodes;
  plan::Tuning tuning;
  tuning.ranks = static_cast<std::uint32_t>(ranks.size());
  for (const std::uint32_t rank : ranks)
    tuning.nodes.push_back(
        nodes.try_emplace(network.nodeOf(rank), static_cast<std::uint32_t>(nodes.size()))
            .first->second);
  const bool oneHost = nodes.size() == 1;
  tuning.direct = oneHost && fabric.memory && cluster.machine.cmaCallNs > 0;
  tuning.shares = tuning.maps = oneHost && fabric.memory;
  tuning.costs.machine = cluster.machine;
  tuning.costs.cores = place.coresOfNode == 0
                           ? tuning.ranks
                           : place.coresOfNode * static_cast<std::uint32_t>(nodes.size());
  if (place.numaNodes > 1)
    for (const std::uint32_t rank : ranks)
      tuning.costs.memoryNodes.push_back(static_cast<std::int32_t>(
          network.localRankOf(rank) * place.numaNodes / network.ranksOfNode(network.nodeOf(rank))));
  if (!fabric.memory) tuning.costs.cables = cablesOf(place, network, ranks, oneHost);
  if (oneHost) return tuning;
  plan::Between between{tuning.nodes};
  if (const auto rail = fabric.outside(0)) between.latencyNs = rail->us * 1e3;
  if (fabric.railGbit() > 0) between.bytesPerNs = fabric.railGbit() / 8;
  between.rankBytesPerNs = fabric.railGbitOf(0) / 8;
  between.messageNs = place.messageNs;
  tuning.costs.between = between;
  return tuning;
}

// A schedule in a file: for all ranks and this collective.
Status readSchedule(const Options& options, Cluster* cluster) {
  const std::string& file = options.algorithm;
  schedule::Schedule schedule;
  WEFT_TRY(formats::readSchedule(file, &schedule));
  const auto refuse = [&](const std::string& why) {
    return Status::error(Code::InvalidArgument, fmt::format("{}: {}", file, why));
  };
  if (schedule.ranks != cluster->network.ranks())
    return refuse(fmt::format("is for {} ranks, not {}; fix: choose --nodes and --ranks-per-node",
                              schedule.ranks, cluster->network.ranks()));
  const std::string_view collective = plan::collectiveName(schedule.collective);
  if (collective != options.collective->name)
    return refuse(
        fmt::format("is for {}, not {}; fix: ask for that", collective, options.collective->name));
  cluster->imported = plan::importSchedule(file, std::move(schedule));
  return {};
}

// Ranks forward for others then, so there must be a way from each to all, but not a link.
Status growTrees(const Place& place, Cluster* cluster) {
  const Status grown = forest::Links::makeSome(sim::graphOf(cluster->network),
                                               {.messageNs = place.messageNs}, &cluster->trees);
  if (!grown.ok()) return wrong(place, grown.text());
  cluster->links = cluster->trees.front();
  return {};
}

}  // namespace

Status readMachine(const Place& place, tune::Machine* machine, std::string* where) {
  if (!place.machine.empty()) {
    WEFT_TRY(tune::loadRecorded(place.machine, machine));
    *where = place.machine;
  } else {
    *machine = tune::calibrate().machine;
    *where = "measured here";
  }
  *machine = tune::estimated(*machine);
  if (tune::isSane(*machine)) return {};
  return Status::error(Code::InvalidArgument,
                       "this machine could not be measured; fix: name a recorded one by --machine");
}

Status checkRank(const Cluster& cluster, const char* what, std::uint32_t rank) {
  if (rank < cluster.network.ranks()) return {};
  return Status::error(Code::InvalidUsage, fmt::format("{} {} is no rank: there are {}", what, rank,
                                                       cluster.network.ranks()));
}

Status makeCluster(const Place& place, Cluster* cluster) {
  topology::Fabric fabric;
  WEFT_TRY(readNodes(place, &fabric));
  if (const Status made =
          sim::Network::make(fabric, place.changes, place.memoryRate, &cluster->network);
      !made.ok())
    return Status::error(Code::InvalidUsage, made.text());
  for (const sim::Straggler& straggler : place.stragglers)
    WEFT_TRY(checkRank(*cluster, "--straggler", straggler.rank));
  return readMachine(place, &cluster->machine, &cluster->measured);
}

Status checkJoined(const Place& place, const Cluster& cluster) {
  const Status joined = cluster.network.checkConnected();
  return joined.ok() ? joined : wrong(place, joined.text());
}

Status readAlgorithm(const Options& options, Cluster* cluster) {
  if (options.algorithm.starts_with("forest")) return growTrees(options, cluster);
  WEFT_TRY(checkJoined(options, *cluster));
  return formats::isScheduleFile(options.algorithm) ? readSchedule(options, cluster) : Status();
}

std::unique_ptr<tools::Job> makeJob(const Place& place, const Cluster& cluster,
                                    const std::vector<std::uint32_t>& ranks) {
  plan::Tuning tuning = tuningOf(place, cluster, ranks);
  if (ranks.size() == cluster.network.ranks()) {
    tuning.imported = cluster.imported;
    tuning.links = cluster.links;
  }
  const bool sharesMemory = !tuning.costs.between && cluster.network.fabric().memory.has_value();
  return std::make_unique<tools::Job>(std::move(tuning), sharesMemory);
}

std::unique_ptr<tools::Job> makeJobOfAll(const Place& place, const Cluster& cluster) {
  std::vector<std::uint32_t> ranks(cluster.network.ranks());
  std::iota(ranks.begin(), ranks.end(), 0u);
  return makeJob(place, cluster, ranks);
}

}  // namespace weft::simulator
