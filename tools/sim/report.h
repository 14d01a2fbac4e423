// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/sim/choice.h"
#include "tools/sim/cluster.h"
#include "tools/sim/options.h"
#include "tools/sim/predict.h"

namespace weft::simulator {

// For people: what stands above the table, and a line for each size.
std::string headOf(const Options& options, const Cluster& cluster);
std::string lineOf(const Options& options, const Cluster& cluster, const Row& row);

// Everything, with units in the keys.
// `choices`: of each row, or empty.
std::string jsonOf(const Options& options, const Cluster& cluster, const std::vector<Row>& rows,
                   const std::vector<Choice>& choices);

}  // namespace weft::simulator
