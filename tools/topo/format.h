// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "topology/fabric.h"

namespace weft::topo {

// A topology file (topology/fabric_file.h) that parseFabric() reads back as the same fabric.
std::string formatFabric(const topology::Fabric& fabric);

}  // namespace weft::topo
