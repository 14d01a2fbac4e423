// SPDX-License-Identifier: Apache-2.0
// What the model chooses between nodes, beside what the simulator finds best there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "perf/weft-perf/collective.h"
#include "perf/weft-perf/types.h"
#include "tests/unit/slow_build.h"
#include "tools/sim/choice.h"
#include "tools/sim/cluster.h"

namespace weft::simulator {
namespace {

std::string source(const std::string& path) {
  return std::filesystem::path(__FILE__).parent_path() / "../../.." / path;
}

struct Nodes {
  const char* topology;
  std::uint32_t nodes;
};

class ChoiceOf : public ::testing::TestWithParam<Nodes> {
 protected:
  ChoiceOf() {
    options_.topology = source(std::string("examples/topologies/") + GetParam().topology);
    options_.machine = source("tests/machines/sapphire_rapids.machine");
    options_.nodes = GetParam().nodes;
    options_.type = perf::parseTypes("float").front();
    EXPECT_TRUE(makeCluster(options_, &cluster_).ok());
  }

  Choice choice(const char* collective, std::size_t bytes) {
    options_.collective = &perf::parseCollective(collective);
    Row row;
    EXPECT_TRUE(predict(options_, cluster_, bytes, nullptr, nullptr, &row).ok());
    Choice all;
    EXPECT_TRUE(judgeChoice(options_, cluster_, row, &all).ok());
    EXPECT_FALSE(all.all.empty());
    return all;
  }

 private:
  Options options_;
  Cluster cluster_;
};

// Both on the same figures.
TEST_P(ChoiceOf, IsNearlyTheBestOfAll) {
  for (const char* collective :
       {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"}) {
    if (test::kSlowBuild && collective != std::string_view("broadcast")) continue;
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{32} << 10, std::size_t{2} << 20})
      EXPECT_LE(choice(collective, bytes).regret(), 1.05) << collective << " of " << bytes;
  }
}

TEST_P(ChoiceOf, ThePriceOfWhatItTakesIsNearTheTime) {
  for (const char* collective : {"all_reduce", "broadcast"}) {
    const Choice all = choice(collective, 32 << 10);
    const auto taken = std::ranges::find_if(all.all, &Candidate::isChosen);
    ASSERT_NE(taken, all.all.end()) << collective;
    EXPECT_NEAR(std::log(taken->modelNs / taken->simulatedNs), 0, std::log(1.1)) << collective;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fabrics, ChoiceOf,
    ::testing::Values(Nodes{"dl1.24xlarge.topo", 1}, Nodes{"dl1.24xlarge.topo", 4},
                      Nodes{"p4d.24xlarge.topo", 2}, Nodes{"ethernet.topo", 8}),
    [](const auto& param) {
      return std::string(param.param.topology, 3) + "x" + std::to_string(param.param.nodes);
    });

}  // namespace
}  // namespace weft::simulator
