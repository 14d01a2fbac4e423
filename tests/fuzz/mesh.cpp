// SPDX-License-Identifier: Apache-2.0
// Files of cables, and what they say of ports that three ranks have.
#include "transports/verbs/mesh.h"

#include <cstring>

#include "fuzz.h"

namespace weft::fuzz {
namespace {

verbs::PortInfo portOf(const char* device, std::uint32_t number) {
  verbs::PortInfo port;
  std::strncpy(port.device, device, sizeof(port.device) - 1);
  port.port = number;
  return port;
}

verbs::Fabric threeRanks() {
  verbs::Fabric fabric;
  for (int rank = 0; rank < 3; ++rank) {
    fabric.ports.push_back({portOf("a", 1), portOf("a", 2), portOf("b", 1)});
    fabric.names.emplace_back(rank, "h");
    fabric.hosts.emplace_back(rank == 0 ? "x" : "y");
    fabric.wanted.emplace_back(3, true);
  }
  return fabric;
}

}  // namespace

void tryInput(Input input) {
  static const verbs::Fabric fabric = threeRanks();
  std::vector<verbs::Cable> cables;
  if (!isGood(verbs::parseCables(std::string(textOf(input)), "file", &cables))) return;
  require(!cables.empty(), "a file of cables names one");
  std::vector<verbs::Holes> holes;
  for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank) {
    verbs::Wiring wiring;
    if (!isGood(verbs::wireByCables(fabric, rank, cables, &wiring))) return;
    for (const verbs::Edge& edge : wiring) {
      require(edge.rank[0] == rank || edge.rank[1] == rank, "an edge is of the rank's own");
      for (std::size_t end = 0; end < 2; ++end)
        require(
            edge.rank[end] < fabric.ranks() && edge.port[end] < fabric.ports[edge.rank[end]].size(),
            "a cable ends in a port");
    }
    holes.push_back(verbs::holesOf(fabric, rank, wiring));
  }
  (void)isGood(verbs::checkWhole(fabric, holes, "file"));
}

}  // namespace weft::fuzz
