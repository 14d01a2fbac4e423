// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "topology/fabric.h"

namespace weft::topo {

// The nodes side by side, at most kMostDrawn of them: the ranks of each on a circle with its mesh
// links, the NICs below, and the rails that join the NICs of all nodes.
std::string drawSvg(const Fabric& fabric);

inline constexpr std::size_t kMostDrawn = 6;

}  // namespace weft::topo
