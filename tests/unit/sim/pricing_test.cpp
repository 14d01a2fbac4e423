// SPDX-License-Identifier: Apache-2.0
// What single ops cost the core that does them.
#include "sim/pricing.h"

#include <gtest/gtest.h>

#include "fabric_job.h"

namespace weft::sim {
namespace {

using plan::Base;
using plan::BoundOp;

// Two ranks that share memory, and the plan of the first one.
struct Desk {
  Network network = networkOf("name host\nnodes 1 ranks 2\nmemory gbit 400 us 0.5\n");
  plan::CostParameters costs = plan::sampleCosts();
  plan::Plan plan;
  Job job;

  // A copy of so many bytes, piece by piece, as the only op of the plan.
  BoundOp& copy(std::uint64_t bytes, Base from = Base::In) {
    constexpr std::uint64_t kPiece = 64 << 10;
    plan.segments = bytes / kPiece;
    plan.segmentBytes = kPiece;
    BoundOp op{};
    op.kind = BoundOp::Kind::Copy;
    op.src.base = from;
    op.dst.base = Base::Out;
    op.max = kPiece;
    op.limit = bytes;
    plan.ops = {op};
    return plan.ops.back();
  }
  // It goes to the peer's buffer as well.
  void spread(BoundOp* op) {
    plan.operands = {{.base = Base::PeerOut, .peer = 1}};
    op->spread = 1;
  }
  double nsPerByte() {
    job.costs = &costs;
    return Pricing(plan, 0, job, network, 0).of(plan.ops[0]).nsPerByte;
  }
};

constexpr std::uint64_t kLarge = 32 << 20, kSmall = 64 << 10;

// The sample's stores past the caches make 17 GB/s, its loads 35 beside them.
TEST(Pricing, StoresPastTheCachesHideLoads) {
  for (const Base from : {Base::In, Base::Arena}) {
    Desk desk;
    desk.costs.machine.take = desk.costs.machine.copy;  // a peer's caches are near
    desk.copy(kLarge, from).stream = true;
    EXPECT_NEAR(1 / desk.nsPerByte(), 17, 1e-6) << "from " << static_cast<int>(from);
  }
}

// One load, two stores: as long as two copies, where it was once taken for one and a half.
TEST(Pricing, EachFurtherStorePastTheCachesTakesItsTime) {
  Desk desk;
  BoundOp& op = desk.copy(kLarge);
  op.stream = true;
  desk.spread(&op);
  EXPECT_NEAR(1 / desk.nsPerByte(), 17.0 / 2, 1e-6);
}

TEST(Pricing, ManyLoadsAreNotHidden) {
  Desk desk;
  BoundOp& op = desk.copy(kLarge);
  op.kind = BoundOp::Kind::Fold;
  op.stream = true;
  op.operands = 3;
  desk.plan.operands.assign(3, {.base = Base::In});
  EXPECT_GT(desk.nsPerByte(), 1.0 / 17 + 2.0 / 35 - 1e-9);
}

// Nobody has read what a peer stored here last: it stores to lines of its own.
TEST(Pricing, ResultsThatNobodyReadsStayWithWhoStoredThem) {
  Desk desk;
  BoundOp& op = desk.copy(kSmall);
  const double alone = desk.nsPerByte();
  desk.spread(&op);
  const double read = desk.nsPerByte() - alone;
  desk.job.resultsAreRead = false;
  const double unread = desk.nsPerByte() - alone;
  EXPECT_NEAR(1 / read, 14, 1e-6);    // the sample's puts
  EXPECT_NEAR(1 / unread, 42, 1e-6);  // and copies
}

// What passes through staging memory takes room in the caches, too.
TEST(Pricing, StagingCountsAmongWhatCachesHold) {
  Desk plain, staged;
  plain.copy(1 << 20);
  staged.copy(1 << 20);
  BoundOp put{};
  put.kind = BoundOp::Kind::Put;
  put.peer = 1;
  put.dst.base = Base::Arena;
  put.max = put.limit = 2 << 20;
  staged.plan.ops.push_back(put);
  EXPECT_GT(staged.nsPerByte(), 1.2 * plain.nsPerByte());
}

}  // namespace
}  // namespace weft::sim
