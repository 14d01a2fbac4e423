// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "perf/weft-perf/numbers.h"

namespace weft::simulator {

Status judgeChoice(const Options& options, const Cluster& cluster, const Row& row, Choice* choice) {
  *choice = {.all = {}, .chosenNs = row.result.ns};
  Options forced = options;
  forced.sigma = 0;
  for (const plan::Estimate& estimate : row.estimates) {
    if (estimate.onlyShared && !options.ownBuffers) continue;
    forced.algorithm = estimate.name;
    Row one;
    WEFT_TRY(predict(forced, cluster, row.bytes, nullptr, nullptr, &one));
    choice->all.push_back({estimate.name, estimate.ns, one.result.ns, one.hash == row.hash});
  }
  std::ranges::stable_sort(choice->all, {}, &Candidate::simulatedNs);
  return {};
}

std::string textOf(const Choice& choice) {
  std::string lines;
  for (const Candidate& way : choice.all)
    lines += fmt::format("  # {:>9} us; the model: {:>9} us; {}{}\n",
                         perf::fitted(way.simulatedNs / 1e3, 9), perf::fitted(way.modelNs / 1e3, 9),
                         way.name, way.isChosen ? ", chosen" : "");
  return lines;
}

std::string regretOf(const std::vector<Choice>& sizes) {
  double logarithms = 0, most = 1;
  for (const Choice& choice : sizes) {
    logarithms += std::log(choice.regret());
    most = std::max(most, choice.regret());
  }
  return fmt::format("# regret of the choice: {:.3f} (geometric mean), {:.3f} (most)\n",
                     std::exp(logarithms / static_cast<double>(sizes.size())), most);
}

nlohmann::ordered_json jsonOf(const Choice& choice) {
  nlohmann::ordered_json json{{"regret", choice.regret()}};
  for (const Candidate& way : choice.all)
    json["ways"].push_back(
        {{"algorithm", way.name}, {"model_ns", way.modelNs}, {"time_ns", way.simulatedNs}});
  return json;
}

}  // namespace weft::simulator
