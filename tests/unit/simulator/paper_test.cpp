// SPDX-License-Identifier: Apache-2.0
// Published tables: what is counted of them by hand, and how far the predictions are off.
#include <gtest/gtest.h>

#include <cmath>

#include "../sim/fabric_job.h"
#include "tools/sim/paper/exchange.h"
#include "tools/sim/paper/predict_paper.h"

namespace weft::simulator {
namespace {

using Ways = PaperExchange::Ways;
using schedule::Collective;

constexpr double kCount = 1e6;

PaperStack stackOf(Collective collective, Ways ways) {
  return {"", "", {{collective, reduce::DType::F32, ways}}};
}

// 2 nodes of 2: 10 bytes a ns inside, 5 for both ranks of a node outside.
sim::Network twoNodes() {
  return sim::networkOf("nodes 2 ranks 2\nmesh all gbit 80 us 3\nrail a gbit 40 us 20 ranks all\n");
}

TEST(Exchange, FlatRanksSendABlockToEachOther) {
  // Two ranks send two blocks each over one NIC.
  EXPECT_NEAR(exchangeNs(twoNodes(), {4, 1}, kCount, stackOf(Collective::AllGather, Ways::Flat)),
              2 * 2 * 4 * kCount / 4 / 5, 1);
  EXPECT_NEAR(exchangeNs(twoNodes(), {4, 1}, kCount, stackOf(Collective::AllReduce, Ways::Flat)),
              2 * 2 * 2 * 4 * kCount / 4 / 5, 1);
}

TEST(Exchange, TwoLevelsCrossOnce) {
  // Half of what is half inside a node, of each of two ranks.
  EXPECT_NEAR(
      exchangeNs(twoNodes(), {4, 1}, kCount, stackOf(Collective::AllGather, Ways::TwoLevel)),
      2 * 4 * kCount / 2 / 2 / 5, 1);
}

TEST(Exchange, GroupsShareTheLinks) {
  // Two groups of two, one rank of each on each node: each sends half of its bytes.
  EXPECT_NEAR(exchangeNs(twoNodes(), {2, 2}, kCount, stackOf(Collective::AllGather, Ways::Flat)),
              2 * 4 * kCount / 2 / 5, 1);
  // Two groups inside nodes.
  EXPECT_NEAR(exchangeNs(twoNodes(), {2, 1}, kCount, stackOf(Collective::AllGather, Ways::Flat)),
              4 * kCount / 2 / 10, 1);
}

TEST(Paper, StepsHaveSequencesAndSlots) {
  const PaperTable& neox = findPaper("neox")->tables[0];
  EXPECT_EQ(neox.replicas(64), 64u);
  EXPECT_EQ(neox.slots(64), 16384 / 64 + 3);
  EXPECT_NEAR(neox.stepNs(neox.rows[4]) / 1e9, 77.3, 0.05);  // as published
  EXPECT_NEAR(neox.efficiency(64, 212), 0.974, 0.0005);      // as published
  const PaperTable& bert = findPaper("dl1")->tables[1];
  EXPECT_EQ(bert.slots(16), 384);
  EXPECT_NEAR(bert.stepNs(bert.rows[2]) / 1e9, 13.43, 0.005);
  EXPECT_NEAR(bert.efficiency(16, 3659.15), 0.827, 0.0005);
  EXPECT_NEAR(findPaper("dl1")->tables[0].efficiency(8, 9977.54), 0.9039, 0.00005);
}

TablePrediction predictionOf(const char* paper, std::size_t table) {
  PaperTable without = findPaper(paper)->tables[table];
  without.microBatch = 0;  // no plans of weft are tried, which takes long
  TablePrediction prediction;
  std::string measured;
  const Status done = predictTable(*findPaper(paper), without, {}, &prediction, &measured);
  EXPECT_TRUE(done.ok()) << done.text();
  prediction.table = nullptr;
  return prediction;
}

TEST(Paper, TheFirstRowAloneCalibrates) {
  for (const auto& [paper, table] :
       {std::pair("dl1", 0u), {"dl1", 1u}, {"neox", 0u}, {"neox", 1u}}) {
    const TablePrediction prediction = predictionOf(paper, table);
    for (const PaperPrediction::OfStack& stack : prediction.rows[0].stacks)
      EXPECT_NEAR(stack.sequencesPerSecond, prediction.rows[0].row.sequencesPerSecond, 1e-6);
  }
}

TEST(Paper, NeoxRowsAreWithinTwoPercent) {
  const TablePrediction prediction = predictionOf("neox", 0);
  ASSERT_EQ(prediction.rows.size(), 5u);
  for (const PaperPrediction& row : prediction.rows)
    EXPECT_NEAR(row.stacks[0].sequencesPerSecond / row.row.sequencesPerSecond, 1, 0.02);
}

// The misses stand in docs/prediction.md: BERT-Large on 8 nodes is 2.32 points off at best.
TEST(Paper, Dl1RowsAreAsFarOffAsTheDocumentSays) {
  const TablePrediction large = predictionOf("dl1", 0), larger = predictionOf("dl1", 1);
  EXPECT_NEAR(large.worstPoints(0), 9.06, 0.01);
  EXPECT_NEAR(large.worstPoints(1), 5.11, 0.01);
  EXPECT_NEAR(large.worstPoints(2), 2.32, 0.01);
  EXPECT_LT(std::abs(larger.worstPoints(2)), 2);
}

TEST(Paper, ThereIsNoOtherOne) { EXPECT_EQ(findPaper("dl2"), nullptr); }

}  // namespace
}  // namespace weft::simulator
