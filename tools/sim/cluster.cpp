// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

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

Status wrong(const Options& options, const std::string& why) {
  return Status::error(Code::InvalidArgument, fmt::format("{}:{}: {}", options.topology,
                                                          lineOfNodes(options.topology), why));
}

// The file's nodes, or so many like its first one, and the first ranks of each.
Status readNodes(const Options& options, topology::Fabric* fabric) {
  WEFT_TRY(topology::readFabric(options.topology, fabric));
  if (options.nodes != 0) {
    const std::uint32_t ranks = fabric->nodes[0].ranks;
    const bool alike = std::ranges::all_of(
        fabric->nodes, [&](const topology::FabricNode& node) { return node.ranks == ranks; });
    if (!alike) return wrong(options, "its nodes differ in size, so --nodes cannot repeat them");
    fabric->nodes.clear();
    for (std::uint32_t i = 0; i < options.nodes; ++i)
      fabric->nodes.push_back({fmt::format("node{}", i), ranks});
  }
  if (options.ranksOfNode > fabric->mostRanksOfANode())
    return wrong(options, fmt::format("its nodes have {} ranks at most, not {}",
                                      fabric->mostRanksOfANode(), options.ranksOfNode));
  for (topology::FabricNode& node : fabric->nodes)
    if (options.ranksOfNode != 0) node.ranks = std::min(node.ranks, options.ranksOfNode);
  const std::uint32_t most = fabric->mostRanksOfANode();
  std::erase_if(fabric->mesh, [&](const topology::MeshLink& link) { return link.b >= most; });
  for (topology::Rail& rail : fabric->rails)
    std::erase_if(rail.ranks, [&](std::uint32_t rank) { return rank >= most; });
  std::erase_if(fabric->rails, [](const topology::Rail& rail) { return rail.ranks.empty(); });
  return {};
}

Status readMachine(const Options& options, tune::Machine* machine, std::string* where) {
  if (!options.machine.empty()) {
    WEFT_TRY(tune::loadRecorded(options.machine, machine));
    *where = options.machine;
  } else {
    *machine = tune::calibrate().machine;
    *where = "measured here";
  }
  *machine = tune::estimated(*machine);
  if (tune::isSane(*machine)) return {};
  return Status::error(Code::InvalidArgument,
                       "this machine could not be measured; fix: name a recorded one by --machine");
}

// What the ranks of these nodes agree on.
plan::Tuning tuningOf(const Options& options, const sim::Network& network,
                      const tune::Machine& machine) {
  const topology::Fabric& fabric = network.fabric();
  const bool oneHost = network.nodes() == 1;
  plan::Tuning tuning;
  tuning.ranks = network.ranks();
  tuning.nodes = network.nodesOfRanks();
  tuning.direct = oneHost && fabric.memory && machine.cmaCallNs > 0;
  tuning.shares = oneHost && fabric.memory;
  tuning.costs.machine = machine;
  tuning.costs.cores =
      options.coresOfNode == 0 ? network.ranks() : options.coresOfNode * network.nodes();
  for (std::uint32_t r = 0; options.numaNodes > 1 && r < network.ranks(); ++r)
    tuning.costs.memoryNodes.push_back(static_cast<std::int32_t>(
        network.localRankOf(r) * options.numaNodes / network.ranksOfNode(network.nodeOf(r))));
  if (oneHost) return tuning;
  plan::Between between{tuning.nodes};
  if (const auto rail = fabric.outside(0)) between.latencyNs = rail->us * 1e3;
  if (fabric.railGbit() > 0) between.bytesPerNs = fabric.railGbit() / 8;
  between.messageNs = options.messageNs;
  tuning.costs.between = between;
  return tuning;
}

// Trees are grown for who wants them: ranks forward for others then, so there must be a way from each to
// all. Else all must be joined.
Status join(const Options& options, const sim::Network& network, plan::Tuning* tuning) {
  if (!options.algorithm.starts_with("forest")) return network.checkConnected();
  forest::Links links;
  WEFT_TRY(forest::Links::make(sim::graphOf(network), {.messageNs = options.messageNs}, &links));
  tuning->links = std::make_shared<const forest::Links>(std::move(links));
  return {};
}

Status checkRanks(const Options& options, const sim::Network& network) {
  const std::uint32_t ranks = network.ranks();
  const auto check = [&](const char* what, std::uint32_t rank) -> Status {
    if (rank < ranks) return {};
    return Status::error(Code::InvalidUsage,
                         fmt::format("{} {} is no rank: there are {}", what, rank, ranks));
  };
  WEFT_TRY(check("--root", static_cast<std::uint32_t>(options.root)));
  for (const sim::Straggler& straggler : options.stragglers)
    WEFT_TRY(check("--straggler", straggler.rank));
  return {};
}

}  // namespace

Status makeCluster(const Options& options, Cluster* cluster) {
  topology::Fabric fabric;
  tune::Machine machine;
  WEFT_TRY(readNodes(options, &fabric));
  if (const Status made =
          sim::Network::make(fabric, options.changes, options.memoryRate, &cluster->network);
      !made.ok())
    return Status::error(Code::InvalidUsage, made.text());
  WEFT_TRY(checkRanks(options, cluster->network));
  WEFT_TRY(readMachine(options, &machine, &cluster->machine));
  plan::Tuning tuning = tuningOf(options, cluster->network, machine);
  if (const Status joined = join(options, cluster->network, &tuning); !joined.ok())
    return wrong(options, joined.text());
  cluster->job = std::make_unique<tools::Job>(
      std::move(tuning),
      cluster->network.nodes() == 1 && cluster->network.fabric().memory.has_value());
  return {};
}

}  // namespace weft::simulator
