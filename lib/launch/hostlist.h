// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace weft::launch {

// Slurm's compressed node lists: "gnode[10,020-25],login" -> gnode10, gnode020, ... A range keeps
// the width of its first number; up to five brackets multiply, as many as Slurm has dimensions.
// InvalidArgument for anything malformed, more than kMaxHosts or a longer name than hosts have.
inline constexpr std::size_t kMaxHosts = 65536;
inline constexpr std::size_t kMaxHostBytes = 255;
Status expandHostlist(std::string_view list, std::vector<std::string>* hosts);

}  // namespace weft::launch
