// SPDX-License-Identifier: Apache-2.0
// What one host's report cannot say: which host differs from the others.
#pragma once

#include <span>
#include <vector>

#include "tools/checks/host.h"

namespace weft::checks {

// Compares one report a host; pure. Which of two hosts is the odd one, nobody knows: with two, only
// what is worse of the two by itself (slower, lower) is found, and differences name the second.
std::vector<Finding> compareHosts(std::span<const HostReport> hosts);

}  // namespace weft::checks
