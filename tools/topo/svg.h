// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "topology/fabric.h"
#include "topology/host.h"

namespace weft::topo {

// The nodes side by side, at most kMostDrawn of them: the ranks of each on a circle with its mesh
// links, the NICs below, and the rails that join the NICs of all nodes.
std::string drawSvg(const topology::Fabric& fabric);

inline constexpr std::size_t kMostDrawn = 6;

// This host: its NUMA nodes with their cores, of which those in `mine` are filled, and all devices.
std::string drawSvg(const topology::HostDescription& host, const cpu_set_t& mine);

// As SVG wants it.
std::string escaped(const std::string& text);

}  // namespace weft::topo
