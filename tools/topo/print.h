// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/topo/here.h"

namespace weft::topo {

// For people, a few lines each.
std::string describe(const topology::HostDescription& host);
std::string describe(const std::vector<Optional>& libraries);
std::string describe(const topology::Fabric& fabric);

}  // namespace weft::topo
