// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <vector>

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
        return sum(i);
      case Collective::ReduceScatter:
        return sum(mine + i);
      case Collective::Broadcast:
        return calls_[0].out[i];
      case Collective::AllGather:
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
  EXPECT_NE(checkOutput(model.call(1), 3), "") << "nothing has run";
  model.run();
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(checkOutput(model.call(rank), 3), "");
  EXPECT_NE(checkOutput(model.call(1), 4), "") << "data of another turn";
  const Call& last = model.call(3);
  last.out[last.outCount() - 1] += 1;
  EXPECT_NE(checkOutput(last, 3), "");
}

INSTANTIATE_TEST_SUITE_P(All, Workload,
                         testing::Values(Collective::AllReduce, Collective::AllGather,
                                         Collective::ReduceScatter, Collective::Broadcast,
                                         Collective::AllToAll),
                         [](const auto& test) { return collectiveName(test.param); });

TEST(WorkloadShape, SizesAreThoseOfNcclTests) {
  EXPECT_EQ(shapeCall(Collective::AllReduce, 64, 0, 4).total, 16u);
  EXPECT_EQ(shapeCall(Collective::AllGather, 64, 0, 4).inCount(), 4u);
  EXPECT_EQ(shapeCall(Collective::AllGather, 64, 0, 4).outCount(), 16u);
  EXPECT_EQ(shapeCall(Collective::ReduceScatter, 64, 0, 4).inCount(), 16u);
  EXPECT_EQ(shapeCall(Collective::ReduceScatter, 64, 0, 4).outCount(), 4u);
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

// The ratio is taken in each round: a slow round of everybody does not count as weft's.
TEST(Report, RatiosArePairedByRound) {
  std::ostringstream out;
  writeTables(out, {point("weft", 0, 2), point("a", 0, 1), point("b", 0, 4), point("floor:x", 0, 1),
                    point("weft", 1, 10), point("a", 1, 20), point("b", 1, 40),
                    point("floor:x", 1, 8), point("floor:y", 1, 5)});
  const std::string table = out.str();
  EXPECT_NE(table.find("| weft | a | b |"), std::string::npos) << table;
  EXPECT_NE(table.find("| 8 | 6.00 | 10.50 | 22.00 | a | 3.00 |"), std::string::npos) << table;
  EXPECT_NE(table.find("| **1.25** (0.50-2.00) | **2.00** (2.00-2.00) |"), std::string::npos)
      << table;
}

}  // namespace
}  // namespace weft::peers
