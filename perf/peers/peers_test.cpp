// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "chart.h"
#include "overview.h"
#include "perf/common/machine.h"
#include "placement.h"
#include "report.h"
#include "workload.h"

namespace weft::peers {
namespace {

// All ranks of one call, run by a sequential model of the collectives.
class Model {
 public:
  Model(Collective collective, std::size_t bytes, int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      Call call = shapeCall(collective, bytes, rank, ranks);
      storage_.emplace_back(call.inCount() + call.outCount());
      call.in = storage_.back().data();
      call.out = call.in + call.inCount();
      calls_.push_back(call);
      fillInput(call, 3);
      poisonOutput(call);
    }
  }

  void run() {
    for (Call& to : calls_) {
      for (std::size_t i = 0; i < to.outCount(); ++i) to.out[i] = result(to, i);
    }
  }

  Call& call(std::size_t rank) { return calls_[rank]; }

 private:
  float sum(std::size_t i) const {
    float total = 0;
    for (const Call& from : calls_) total += from.in[i];
    return total;
  }

  float result(const Call& to, std::size_t i) const {
    const std::size_t mine = static_cast<std::size_t>(to.rank) * to.block;
    switch (to.collective) {
      case Collective::AllReduce:
      case Collective::Reduce:
        return sum(i);
      case Collective::ReduceScatter:
        return sum(mine + i);
      case Collective::Broadcast:
        return calls_[0].out[i];
      case Collective::Scatter:
        return calls_[0].in[mine + i];
      case Collective::AllGather:
      case Collective::Gather:
        return calls_[i / to.block].in[i % to.block];
      case Collective::AllToAll:
        return calls_[i / to.block].in[mine + i % to.block];
    }
    return 0;
  }

  std::vector<std::vector<float>> storage_;
  std::vector<Call> calls_;
};

class Workload : public testing::TestWithParam<Collective> {};

TEST_P(Workload, AcceptsTheRightAnswerOnly) {
  Model model(GetParam(), 4096, 4);
  const std::size_t holder = model.call(3).outCount() > 0 ? 3 : kRoot;  // that has an output
  EXPECT_NE(checkOutput(model.call(holder), 3), "") << "nothing has run";
  model.run();
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(checkOutput(model.call(rank), 3), "");
  EXPECT_NE(checkOutput(model.call(holder), 4), "") << "data of another turn";
  const Call& last = model.call(holder);
  last.out[last.outCount() - 1] += 1;
  EXPECT_NE(checkOutput(last, 3), "");
}

INSTANTIATE_TEST_SUITE_P(All, Workload,
                         testing::Values(Collective::AllReduce, Collective::AllGather,
                                         Collective::ReduceScatter, Collective::Broadcast,
                                         Collective::Reduce, Collective::Gather,
                                         Collective::Scatter, Collective::AllToAll),
                         [](const auto& test) { return collectiveName(test.param); });

TEST(WorkloadShape, SizesAreThoseOfNcclTests) {
  EXPECT_EQ(shapeCall(Collective::AllReduce, 64, 0, 4).total, 16u);
  EXPECT_EQ(shapeCall(Collective::AllGather, 64, 0, 4).inCount(), 4u);
  EXPECT_EQ(shapeCall(Collective::AllGather, 64, 0, 4).outCount(), 16u);
  EXPECT_EQ(shapeCall(Collective::ReduceScatter, 64, 0, 4).inCount(), 16u);
  EXPECT_EQ(shapeCall(Collective::ReduceScatter, 64, 0, 4).outCount(), 4u);
  EXPECT_EQ(shapeCall(Collective::Reduce, 64, 0, 4).outCount(), 16u);
  EXPECT_EQ(shapeCall(Collective::Reduce, 64, 1, 4).outCount(), 0u) << "the root's alone";
  EXPECT_EQ(shapeCall(Collective::Gather, 64, 0, 4).outCount(), 16u);
  EXPECT_EQ(shapeCall(Collective::Gather, 64, 1, 4).inCount(), 4u);
  EXPECT_EQ(shapeCall(Collective::Scatter, 64, 0, 4).inCount(), 16u);
  EXPECT_EQ(shapeCall(Collective::Scatter, 64, 1, 4).inCount(), 0u);
  EXPECT_EQ(shapeCall(Collective::Scatter, 64, 1, 4).outCount(), 4u);
  EXPECT_EQ(shapeCall(Collective::AllToAll, 8, 0, 8).block, 1u) << "never an empty block";
}

TEST(Report, NamesAndSizes) {
  EXPECT_EQ(parseCollective("alltoall"), Collective::AllToAll);
  EXPECT_THROW(parseCollective("allreduce"), std::invalid_argument);
  EXPECT_EQ(parseSize("64K"), 65536u);
  EXPECT_EQ(sizeText(256 << 20), "256M");
  for (const char* wrong : {"", "K", "1G", "4 K", "1.5M"}) {
    EXPECT_THROW(parseSize(wrong), std::invalid_argument) << wrong;
  }
}

Measurement point(const char* contender, int round, double us) {
  Measurement m;
  m.ranks = 2;
  m.round = round;
  m.bytes = 8;
  m.contender = contender;
  m.timing.median = us;
  return m;
}

const std::vector<Measurement>& twoRounds() {
  static const std::vector<Measurement> measurements = {
      point("weft:any", 0, 2),     point("weft:own", 0, 1),
      point("weft:threads", 0, 1), point("a", 0, 1),
      point("b:x", 0, 4),          point("b:y", 0, 2),
      point("floor:x", 0, 1),      point("weft:any", 1, 10),
      point("weft:own", 1, 8),     point("weft:threads", 1, 5),
      point("a", 1, 20),           point("floor:x", 1, 8),
      point("floor:y", 1, 5)};
  return measurements;
}

// The ratio is taken in each round: a slow round of everybody does not count as weft's. A library
// that took part in one round only is compared there.
TEST(Report, RatiosArePairedByRound) {
  std::ostringstream out;
  writeTables(out, twoRounds());
  const std::string table = out.str();
  EXPECT_NE(table.find("| 8 | 6.00 | 4.50 | 3.00 | 10.50 b:y | 3.00 |"), std::string::npos)
      << table;
  EXPECT_NE(table.find("| **1.25** (0.50-2.00) | **0.70** (0.40-1.00) | **2.00** (2.00-2.00) | "
                       "**1.30** (1.00-1.60) | **0.50** (0.50-0.50) |"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("| 8 | 6.00 | 4.50 | 3.00 | 10.50 | 4.00 | 2.00 |"), std::string::npos)
      << "every contender\n"
      << table;
}

TEST(Report, JsonHasTheSummaryAndTheMeasurements) {
  std::ostringstream out;
  writeJson(out, twoRounds());
  const auto json = nlohmann::json::parse(out.str());
  EXPECT_EQ(json["measurements"].size(), twoRounds().size());
  ASSERT_EQ(json["summary"].size(), 1u);
  EXPECT_DOUBLE_EQ(json["summary"][0]["own_us"], 4.5);
  EXPECT_DOUBLE_EQ(json["summary"][0]["own_to_floor"]["median"], 1.3);
}

TEST(Overview, TellsTheMeanTheWorstSizeAndHowManyAreAboveTheLimit) {
  std::vector<Measurement> measurements;
  for (const auto& [bytes, us] : {std::pair(8, 2.0), {1 << 20, 0.5}, {4 << 20, 1.0}}) {
    for (const char* name : {"weft:any", "weft:own", "mpi", "floor:x"}) {
      measurements.push_back(point(name, 0, std::string(name) == "weft:any" ? us : 1));
      measurements.back().bytes = static_cast<std::uint64_t>(bytes);
    }
  }
  const Spread any = spreadOf(arrange(measurements)[0], &Summary::anyToPeer, 1.05);
  EXPECT_EQ(any.points, 3u);
  EXPECT_EQ(any.above, 1u);
  EXPECT_DOUBLE_EQ(any.mean, 1);
  EXPECT_EQ(any.worstBytes, 8u);
  std::ostringstream out;
  writeOverview(out, measurements);
  EXPECT_NE(out.str().find("| 2 | all_reduce | steady | **1.00**, worst 2.00 at 8; 1 of 3 above "
                           "1.05 | **1.00**, worst 1.00 at 8; 0 of 3 above 1.05 | **1.00**, worst "
                           "1.00 at 1M; 0 of 2 above 1.2 |"),
            std::string::npos)
      << out.str();
}

TEST(Machine, IsNamedByItsProcessorsNumbers) {
  const tools::Processor intel = tools::parseProcessor(
      "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
      "model name\t: Intel(R) Xeon(R) Processor\n\nprocessor\t: 1\nmodel\t\t: 7\n");
  EXPECT_EQ(tools::kindOf(intel), "intel-family-6-model-143");
  EXPECT_EQ(intel.name, "Intel(R) Xeon(R) Processor");
  const tools::Processor arm = tools::parseProcessor(
      "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd40\nflags\t:\n:\n");
  EXPECT_EQ(tools::kindOf(arm), "0x41-family-8-model-0xd40");
  EXPECT_EQ(tools::kindOf(tools::parseProcessor("")), "unknown-family--model-");
}

TEST(Report, WhatWasNotMeasuredIsADash) {
  std::ostringstream out;
  writeTables(out, {point("weft:any", 0, 2)});
  EXPECT_NE(out.str().find("| 8 | 2.00 | - | - | - | - | - | - | - | - | - |"), std::string::npos)
      << out.str();
}

std::size_t countOf(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

// Two sizes, so that a line has a direction.
TEST(Chart, HasALineForEachFormOfWeftAndEachLibrary) {
  std::vector<Measurement> measurements = twoRounds();
  for (Measurement m : twoRounds()) {
    m.bytes = 1 << 20;
    measurements.push_back(m);
  }
  std::ostringstream out;
  writeChart(out, measurements);
  const std::string chart = out.str();
  EXPECT_EQ(countOf(chart, "<polyline"), 5u) << "any, own, threads, a and the better of b";
  EXPECT_EQ(countOf(chart, ">1M</text>"), 1u);
  EXPECT_EQ(countOf(chart, "<svg"), countOf(chart, "</svg>"));
  EXPECT_EQ(countOf(chart, "nan"), 0u) << chart;
}

TEST(Chart, NothingMeasuredIsAnEmptyPicture) {
  std::ostringstream out;
  writeChart(out, {});
  EXPECT_EQ(countOf(out.str(), "<polyline"), 0u);
  EXPECT_NE(out.str().find("</svg>"), std::string::npos);
}

TEST(Placement, RunsThatMetTheCoresElsewhereThanMostAreTold) {
  EXPECT_TRUE(elsewhere({}).empty());
  EXPECT_TRUE(elsewhere({{0, {100, 110}}, {3, {95, 100}}, {4, {120, 105}}}).empty());
  const std::set<std::size_t> moved =
      elsewhere({{0, {100, 110}}, {1, {48, 100}}, {2, {101, 490}}, {3, {95, 100}}, {4, {99, 102}}});
  EXPECT_EQ(moved, (std::set<std::size_t>{1, 2}));
  EXPECT_TRUE(elsewhere({{0, {0, 0}}, {1, {0, 0}}}).empty()) << "one core: nothing is known";
}

TEST(Placement, AWayBetweenTwoCoresTakesTimeAndOneCoreHasNone) {
  Page page;
  page.coreCount = 1;
  EXPECT_EQ(roundTripNs(page), 0);
  PageOwner here(2, 1);
  const double ns = roundTripNs(here.page());
  EXPECT_TRUE(ns == 0 || (ns > 5 && ns < 1e6)) << ns;  // 0: a core was busy
}

}  // namespace
}  // namespace weft::peers
