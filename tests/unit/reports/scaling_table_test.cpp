// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/scaling_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace weft::train {
namespace {

// A machine whose second round has half the cores.
const ScalingRounds kOne{1, {100, 50, 100}, {100, 50, 100}, {0, 0, 0}, {"a"}};
const ScalingRounds kTwo{2, {190, 95, 190}, {200, 100, 200}, {3, 9, 2}, {"a", "b"}};

TEST(ScalingTable, RatesAreComparedWithinARound) {
  EXPECT_EQ(efficiencies(kTwo, kOne), (std::vector<double>{95, 95, 95}));
  EXPECT_EQ(communicationEfficiencies(kTwo), (std::vector<double>{95, 95, 95}));
  EXPECT_EQ(scalingRow(kTwo, kOne, nullptr),
            "    2    190.00      95.00-190.00      95.00      95.0 %     95.0-95.0            "
            "200.00      95.0 %     95.0-95.0        3.00\n");
}

TEST(ScalingTable, ThePublishedEfficiencyStandsBeside) {
  const PublishedJob* const job = publishedJob("bert-large-phase1");
  EXPECT_TRUE(scalingHead(job).ends_with(" exposed(ms)   published\n"));
  EXPECT_TRUE(scalingRow(kTwo, kOne, job).ends_with("        3.00      98.0 %\n"));
  EXPECT_TRUE(
      scalingRow(kTwo, kOne, publishedJob("bert-1.5b-dl1")).ends_with(" 3.00           -\n"));
}

TEST(ScalingTable, ProgramsGetItWithUnits) {
  const PublishedJob* const job = publishedJob("bert-large-phase1");
  const auto json = nlohmann::json::parse(scalingJson({kOne, kTwo}, job)).at("scaling");
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[1].at("ranks"), 2);
  EXPECT_EQ(json[1].at("sequences_per_s").at("least"), 95);
  EXPECT_EQ(json[1].at("efficiency_percent").at("median"), 95);
  EXPECT_EQ(json[1].at("exposed_ms").at("most"), 9);
  EXPECT_NEAR(json[1].at("published_efficiency_percent"), 98.04, 0.01);
  EXPECT_EQ(json[1].at("hosts"), nlohmann::json({"a", "b"}));
  EXPECT_FALSE(nlohmann::json::parse(scalingJson({kOne}, nullptr))
                   .at("scaling")[0]
                   .contains("published_efficiency_percent"));
  const std::string csv = scalingCsv({kOne, kTwo}, job);
  EXPECT_NE(csv.find("\n2,190,95,190,200,95,95,3,98.0449,a b\n"), std::string::npos) << csv;
  EXPECT_TRUE(scalingCsv({kOne}, nullptr).ends_with("\n1,100,50,100,100,100,100,0,,a\n"));
}

TEST(ScalingTable, TheFewestRanksThatHaveAModelAreTheMeasure) {
  const ScalingRounds four{4, {150, 100, 200}, {200, 100, 200}, {3, 9, 2}};
  EXPECT_EQ(efficiencies(kTwo, kTwo), (std::vector<double>{100, 100, 100}));
  EXPECT_EQ(efficiencies(four, {2, {100, 50, 100}, {}, {}}), (std::vector<double>{75, 100, 100}));
  EXPECT_EQ(communicationEfficiencies(kOne), (std::vector<double>{100, 100, 100}));
}

TEST(ScalingTable, SaysWhatTheNoiseHides) {
  EXPECT_NE(scalingNoise({kOne, kTwo})
                .find("by up to 50.0 % from round to round (with 1 rank): too "
                      "noisy to tell"),
            std::string::npos)
      << scalingNoise({kOne, kTwo});
  EXPECT_EQ(scalingNoise({{1, {100, 101, 102}, {100, 101, 102}, {}}}),
            "# the same run differed by up to 2.0 % from round to round (with 1 rank)\n");
  EXPECT_EQ(scalingNoise({{2, {100}, {100}, {}}}),
            "# of one round nobody knows by how much the next one differs (--scaling-rounds)\n");
}

}  // namespace
}  // namespace weft::train
