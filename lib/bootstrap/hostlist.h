// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace weft {

// Slurm's compressed node lists: "gnode[10,020-25],login" -> gnode10, gnode020, ... A range keeps
// the width of its first number; several brackets multiply. InvalidArgument for anything malformed
// or longer than kMaxHosts.
inline constexpr std::size_t kMaxHosts = 65536;
Status expandHostlist(std::string_view list, std::vector<std::string>* hosts);

}  // namespace weft
