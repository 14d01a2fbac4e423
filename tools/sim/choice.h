// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "tools/sim/cluster.h"
#include "tools/sim/options.h"
#include "tools/sim/predict.h"

namespace weft::simulator {

// A way to run a call: what the model thinks of it, and what the simulator.
struct Candidate {
  std::string name;
  double modelNs = 0, simulatedNs = 0;
  bool isChosen = false;
};

// All among which the model has chosen at one size, the best first.
struct Choice {
  std::vector<Candidate> all;
  double chosenNs = 0;  // simulated

  // How much longer the chosen one takes than the best: 1 if it is the best.
  double regret() const { return all.empty() ? 1 : chosenNs / all.front().simulatedNs; }
};

// `row`: of the same size, where the model has chosen.
Status judgeChoice(const Options& options, const Cluster& cluster, const Row& row, Choice* choice);

// For people: a line for each way, and after all sizes one of their regret.
std::string textOf(const Choice& choice);
std::string regretOf(const std::vector<Choice>& sizes);

nlohmann::ordered_json jsonOf(const Choice& choice);

}  // namespace weft::simulator
