// SPDX-License-Identifier: Apache-2.0
// Topology files.
#include "fuzz.h"
#include "tools/topo/format.h"
#include "topology/fabric_file.h"

namespace weft::fuzz {

void tryInput(Input input) {
  topology::Fabric first, second;
  if (!isGood(topology::parseFabric(textOf(input), "file", &first))) return;
  const std::string written = topo::formatFabric(first);
  require(topology::parseFabric(written, "written", &second).ok(), "what is written can be read");
  require(first == second, "what is written reads as the same");
  (void)first.railGbit();
  (void)first.inside(0, 1);
  (void)isGood(topology::checkFabricFits(first, {1, 2}));
}

}  // namespace weft::fuzz
