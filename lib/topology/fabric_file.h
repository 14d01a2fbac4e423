// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "topology/fabric.h"

namespace weft::topology {

// A Fabric as a file, one fact a line, in this order; # begins a comment:
//
//   weft-topology 1
//   name dl1.24xlarge x 4
//   nodes a b c d ranks 8               or: nodes 4 ranks 8; more lines for nodes of other sizes
//   memory gbit 200 us 0.5              the ranks of a node share memory
//   mesh all gbit 100 us 3              each pair of ranks of a node, or one pair: mesh 0-1 ...
//   rail efa0 gbit 100 us 20 ranks 0-1  or: ranks all, ranks 0,2,4-6
//
// Rates are of one direction.

// Errors name `file`, the line and what is wrong with it.
Status parseFabric(std::string_view lines, const std::string& file, Fabric* out);
Status readFabric(const std::string& file, Fabric* out);
// The fabric in WEFT_TOPO_FILE; nothing if that is not set.
Status fabricFromKnob(std::optional<Fabric>* out);

inline constexpr std::uint32_t kMostFabricNodes = 65536;
inline constexpr std::uint32_t kMostRanksOfANode = 1024;
inline constexpr std::size_t kMostRails = 1024;

}  // namespace weft::topology
