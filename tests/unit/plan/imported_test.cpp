// SPDX-License-Identifier: Apache-2.0
// A schedule that was read from a file is forced by its name, where it fits.
#include "plan/imported.h"

#include <gtest/gtest.h>

#include "plan/arrivals.h"
#include "plan/candidate.h"
#include "plan/decide.h"
#include "sample_machine.h"

namespace weft::plan {
namespace {

const char* const kImportedName = "folder/ring.xml";

Tuning withRing(schedule::Collective collective, std::uint32_t parts = 1) {
  schedule::Schedule ring = schedule::findAlgorithm(collective, "ring")->make({.ranks = 4});
  ring.parts = parts;
  Tuning tuning;
  tuning.ranks = 4;
  tuning.direct = true;
  tuning.costs = sampleCosts();
  tuning.algorithm = kImportedName;
  tuning.imported = importSchedule(kImportedName, std::move(ring));
  return tuning;
}

Call importedCallOf(schedule::Collective collective) {
  Call call;
  call.collective = collective;
  call.type = reduce::DType::F32;
  call.count = 1000;
  return call;
}

void expectImportRefused(const Call& call, const Tuning& tuning, const char* error) {
  Decision decision;
  const Status decided = decide(call, tuning, &decision);
  EXPECT_EQ(decided.code(), Code::InvalidUsage);
  EXPECT_NE(decided.text().find(error), std::string::npos) << decided.text();
}

TEST(ImportedSchedule, IsForcedForItsCollectiveAlone) {
  const Tuning tuning = withRing(schedule::Collective::AllReduce);
  Decision decision;
  ASSERT_TRUE(decide(importedCallOf(schedule::Collective::AllReduce), tuning, &decision).ok());
  EXPECT_EQ(decision.schedule.name, "all-reduce ring+staged");
  EXPECT_EQ(decision.why, "WEFT_ALGO");
  ASSERT_TRUE(decide(importedCallOf(schedule::Collective::AllGather), tuning, &decision).ok());
  EXPECT_NE(decision.why, "WEFT_ALGO");
}

TEST(ImportedSchedule, HasItsArrivalSlots) {
  Tuning tuning = withRing(schedule::Collective::AllReduce);
  schedule::Schedule many = tuning.imported->schedule;
  many.program = [](std::uint32_t rank) {
    schedule::Program program;
    for (std::uint32_t i = 0; i < 500; ++i)
      program.put((rank + 1) % 4, schedule::in(0), schedule::tmp(i), {0});
    return program;
  };
  tuning.imported = importSchedule(kImportedName, many);
  EXPECT_EQ(arrivalsPerPeer(tuning), 501u);
}

TEST(ImportedSchedule, IsRefusedWhereItDoesNotFit) {
  Tuning tuning = withRing(schedule::Collective::AllReduce);
  Call call = importedCallOf(schedule::Collective::AllReduce);
  call.algorithm = "folder/ring.xml:direct";
  expectImportRefused(call, tuning, "proved with staged puts alone");
  call.algorithm = kImportedName;
  call.op = reduce::RedOp::Epilogue;
  expectImportRefused(call, tuning, "unknown algorithm");
  call.op = reduce::RedOp::Sum;
  call.reproducible = true;
  expectImportRefused(call, tuning, "does not add in rank order");
  call.reproducible = false;
  tuning.ranks = 5;
  expectImportRefused(call, tuning, "is for 4 ranks, and this communicator has 5");
}

TEST(ImportedSchedule, CutsEqualBlocksAlone) {
  const Tuning tuning = withRing(schedule::Collective::AllGather, 2);
  const std::vector<std::size_t> counts{1, 2, 3, 4};
  Call call = importedCallOf(schedule::Collective::AllGather);
  call.counts = counts;
  expectImportRefused(call, tuning, "which must be of one length");
  call.counts = {};
  call.op = reduce::RedOp::Epilogue;
  expectImportRefused(call, tuning, "has no place for an epilogue");
}

}  // namespace
}  // namespace weft::plan
