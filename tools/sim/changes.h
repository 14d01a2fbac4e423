// SPDX-License-Identifier: Apache-2.0
// What-ifs as they are typed. All throw std::invalid_argument with a sentence.
#pragma once

#include <string>

#include "sim/job.h"
#include "sim/network.h"

namespace weft::simulator {

// "0:2-3", "all:efa0": a node, or all of them, and a mesh link or a rail of it, whose rate becomes
// `factor` times what it was.
sim::Change parseChange(const std::string& text, double factor);

// "0:2-3:0.25": with the factor.
sim::Change parseSlowLink(const std::string& text);

// "5:1.5": a rank whose core takes 1.5 times as long.
sim::Straggler parseStraggler(const std::string& text);

}  // namespace weft::simulator
