// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/print.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <set>

#include "topology/cores.h"

namespace weft::topo {
namespace {

std::string speedOf(const topology::HostDevice& device) {
  return device.gbit > 0 ? fmt::format("{:g} Gbit/s", device.gbit) : "rate unknown";
}

std::string placeOf(const topology::HostDescription& host, const topology::HostDevice& device) {
  std::string line = device.busId.empty() ? "on no bus" : device.busId;
  if (CPU_COUNT(&device.near) == 0) return line;
  static constexpr const char* kDistances[] = {"near", "on another NUMA node",
                                               "in another package"};
  const int distance = topology::distanceOf(host, device, topology::allowedCores());
  return line +
         fmt::format(", {} (cores {})", kDistances[distance], topology::coreList(device.near));
}

std::string plural(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string nodesLine(const topology::Fabric& fabric) {
  std::map<std::uint32_t, std::size_t> bySize;
  for (const topology::FabricNode& node : fabric.nodes) ++bySize[node.ranks];
  std::string line;
  for (const auto& [ranks, count] : bySize)
    line += fmt::format("{}{} of {}", line.empty() ? "" : ", ", plural(count, "node"),
                        plural(ranks, "rank"));
  return line + fmt::format("; {} in all", plural(fabric.ranks(), "rank"));
}

std::string meshLine(const topology::Fabric& fabric) {
  std::set<double> rates, latencies;
  for (const topology::MeshLink& link : fabric.mesh) {
    rates.insert(link.speed.gbit);
    latencies.insert(link.speed.us);
  }
  const std::size_t ranks = fabric.mostRanksOfANode();
  const bool full = fabric.mesh.size() == ranks * (ranks - 1) / 2;
  const auto range = [](const std::set<double>& values) {
    return values.size() == 1 ? fmt::format("{:g}", *values.begin())
                              : fmt::format("{:g} to {:g}", *values.begin(), *values.rbegin());
  };
  return fmt::format("{}{} of {} Gbit/s, {} us", full ? "full mesh, " : "",
                     plural(fabric.mesh.size(), "link"), range(rates), range(latencies));
}

std::string railLine(const topology::Rail& rail) {
  std::string ranks;
  for (const std::uint32_t r : rail.ranks)
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ",", r);
  return fmt::format("{}: {:g} Gbit/s, {:g} us, {} {}", rail.name, rail.speed.gbit, rail.speed.us,
                     rail.ranks.size() == 1 ? "rank" : "ranks", ranks);
}

}  // namespace

std::string describe(const topology::HostDescription& host) {
  const cpu_set_t mine = topology::allowedCores();
  std::string lines = fmt::format("host {}: {} to run on ({}), {} may be kept busy\n", host.name,
                                  plural(static_cast<std::size_t>(CPU_COUNT(&mine)), "core"),
                                  topology::coreList(mine), topology::usableCores(mine));
  if (host.packages > 0) lines += fmt::format("  {}\n", plural(host.packages, "package"));
  for (const topology::NumaNode& node : host.numa)
    lines += fmt::format("  numa {}: {} MiB, cores {}, package {}\n", node.index, node.memoryMiB,
                         topology::coreList(node.cores), node.package);
  for (const topology::HostDevice& device : host.devices)
    lines += fmt::format(
        "  {} {}: {}, {}, {}\n", device.kind == topology::HostDevice::Rdma ? "rdma" : "network",
        device.name, device.up ? "up" : "down", speedOf(device), placeOf(host, device));
  if (!host.missing.empty()) lines += fmt::format("  missing: {}\n", host.missing);
  return lines;
}

std::string describe(const std::vector<Optional>& libraries) {
  std::string lines = "libraries that are opened at run time\n";
  for (const Optional& library : libraries)
    lines += fmt::format("  {}: {}; for {}\n", library.file, library.here ? "here" : "missing",
                         library.purpose);
  return lines;
}

std::string describe(const topology::Fabric& fabric) {
  std::string lines =
      fmt::format("{}: {}\n", fabric.name.empty() ? "fabric" : fabric.name, nodesLine(fabric));
  if (fabric.memory)
    lines +=
        fmt::format("  memory: {:g} Gbit/s, {:g} us\n", fabric.memory->gbit, fabric.memory->us);
  if (!fabric.mesh.empty()) lines += fmt::format("  mesh: {}\n", meshLine(fabric));
  for (const topology::Rail& rail : fabric.rails)
    lines += fmt::format("  rail {}\n", railLine(rail));
  if (!fabric.rails.empty())
    lines += fmt::format("  rails of a node together: {:g} Gbit/s\n", fabric.railGbit());
  return lines;
}

}  // namespace weft::topo
