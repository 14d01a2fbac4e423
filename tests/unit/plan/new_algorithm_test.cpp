// SPDX-License-Identifier: Apache-2.0
// A new algorithm is one generator and one line: then it is listed, forced, chosen and has arrival
// slots.
#include <gtest/gtest.h>

#include "plan/arrivals.h"
#include "plan/bind.h"
#include "plan/decide.h"
#include "plan/forced.h"
#include "sample_machine.h"
#include "verify/verify.h"

namespace weft::plan {
namespace {

// All send to rank 0, which adds in rank order and sends the sum to all: few messages, so good
// where all ranks share one core.
schedule::Schedule centralAllReduce(const schedule::Shape& shape) {
  const std::uint32_t n = shape.ranks;
  return {.name = "all-reduce central",
          .collective = schedule::Collective::AllReduce,
          .ranks = n,
          .inChunks = 1,
          .outChunks = 1,
          .tmpChunks = n,
          .program = [n](std::uint32_t me) {
            schedule::Program p;
            if (me != 0) {
              p.put(0, schedule::in(0), schedule::tmp(me), {0});
              p.wait(0, schedule::out(0), {0});
              return p;
            }
            std::vector<schedule::Slot> addends{schedule::in(0)};
            for (std::uint32_t r = 1; r < n; ++r) {
              p.wait(r, schedule::tmp(r), {0});
              addends.push_back(schedule::tmp(r));
            }
            p.reduce(schedule::out(0), addends, {0});
            p.apply(schedule::ApplyId::Finish, schedule::out(0), schedule::out(0), {0});
            for (std::uint32_t r = 1; r < n; ++r) p.put(r, schedule::out(0), schedule::out(0), {0});
            return p;
          }};
}

class NewAlgorithm : public ::testing::Test {
 protected:
  NewAlgorithm() : list_(schedule::algorithms().begin(), schedule::algorithms().end()) {
    list_.push_back({"central", schedule::Collective::AllReduce, centralAllReduce, 3,
                     schedule::SumOrder::Rank});
    before_ = schedule::exchangeAlgorithms(list_);
  }
  ~NewAlgorithm() override { schedule::exchangeAlgorithms(before_); }

  static Tuning onOneCore(std::uint32_t ranks) {
    Tuning t;
    t.ranks = ranks;
    t.direct = true;
    t.costs = sampleCosts(1);
    return t;
  }

 private:
  std::vector<schedule::Algorithm> list_;
  std::span<const schedule::Algorithm> before_;
};

TEST_F(NewAlgorithm, IsProved) {
  const schedule::Algorithm& central =
      *schedule::findAlgorithm(schedule::Collective::AllReduce, "central");
  verify::VerifyOptions options;
  options.order = central.order;
  options.agreement = true;
  for (std::uint32_t n = 1; n <= 16; ++n) {
    schedule::Shape shape;
    shape.ranks = n;
    const Status proof = verify::verify(central.make(shape), options);
    EXPECT_TRUE(proof.ok()) << proof.text();
  }
}

TEST_F(NewAlgorithm, IsListedAndForced) {
  const std::string names = algorithmNames(schedule::Collective::AllReduce);
  EXPECT_NE(names.find(",central"), std::string::npos);
  EXPECT_EQ(names.find("forest"), std::string::npos) << "no communicator knows its links";
  Call call = callOf(schedule::Collective::AllReduce, 4);
  call.algorithm = "central";
  Decision decision;
  ASSERT_TRUE(decide(call, onOneCore(8), &decision).ok());
  EXPECT_EQ(decision.schedule.name, "all-reduce central+staged");
}

TEST_F(NewAlgorithm, IsChosenWhereItIsCheapest) {
  Decision decision;
  ASSERT_TRUE(decide(callOf(schedule::Collective::AllReduce, 1024), onOneCore(8), &decision).ok());
  EXPECT_EQ(decision.schedule.name, "all-reduce central+staged");
  EXPECT_EQ(decision.why, "the model");
  ASSERT_TRUE(decide(callOf(schedule::Collective::AllReduce, 4096), onOneCore(2), &decision).ok());
  EXPECT_EQ(decision.estimates.size(), 2u) << "automatic from 3 ranks on";
}

TEST_F(NewAlgorithm, IsBoundInTheArrivalSlotsOfACommunicator) {
  const Tuning t = onOneCore(8);
  const Call call = callOf(schedule::Collective::AllReduce, 4096);
  Decision decision;
  ASSERT_TRUE(decide(call, t, &decision).ok());
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    const BindTarget target{.rank = rank,
                            .ranks = 8,
                            .arrivalSlots = 8 * arrivalsPerPeer(t),
                            .budget = {1 << 20, 256 << 10}};
    std::unique_ptr<Plan> plan;
    const Status bound = bindSchedule(decision.schedule, call, target, &plan);
    EXPECT_TRUE(bound.ok()) << bound.text();
  }
}

}  // namespace
}  // namespace weft::plan
