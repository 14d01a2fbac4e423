// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/sim/paper/predict_paper.h"

namespace weft::simulator {

// For people: what is known and assumed, and each table beside what is predicted of it.
std::string headOf(const Paper& paper);
std::string tableOf(const Paper& paper, const TablePrediction& table, const std::string& measured);

// Everything, with units in the keys.
std::string jsonOf(const Paper& paper, const std::vector<TablePrediction>& tables,
                   const std::string& measured);

}  // namespace weft::simulator
