// SPDX-License-Identifier: Apache-2.0
// A copy of any length ends with the call: whoever copies looks for an abort piece by piece.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "engine/executor.h"
#include "tests/unit/paged_transport.h"

namespace weft::engine {
namespace {

constexpr std::size_t kBytes = std::size_t{64} << 20;
constexpr std::size_t kPiece = std::size_t{4} << 20;  // half a millisecond of copying

// Counts what is put straight into a peer's memory.
class CountingTransport final : public test::PagedTransport {
 public:
  CountingTransport() : PagedTransport({.ranks = 2, .arrivalSlots = 1}) {}

  transport::Caps caps() const override { return {.direct = true}; }
  bool putTo(std::uint32_t, std::uint64_t, const void*, std::size_t bytes) override {
    return take(bytes);
  }
  transport::PutResult put(const transport::Put& put) override {
    ++puts;
    take(put.bytes);
    return transport::PutResult::Done;
  }

  std::function<void()> meanwhile;
  std::size_t longest = 0, all = 0;
  int puts = 0;

 private:
  bool take(std::size_t bytes) {
    longest = std::max(longest, bytes);
    all += bytes;
    if (meanwhile) meanwhile();
    return true;
  }
};

plan::Plan planOfOnePut() {
  plan::Plan plan;
  plan.segmentBytes = kBytes;
  plan::BoundOp& put = plan.ops.emplace_back();
  put.kind = plan::BoundOp::Kind::PutDirect;
  put.peer = 1;
  put.max = put.limit = kBytes;
  return plan;
}

struct Rank {
  CountingTransport transport;
  watch::Watch watch{transport, 0, {{0, "here", 1}, {1, "here", 1}}, "test"};
  WaitTuning tuning;
  Executor executor{transport, watch, 0, tuning};
  plan::Plan plan = planOfOnePut();
  std::vector<std::byte> in = std::vector<std::byte>(kBytes);

  Status run() { return executor.run({.plan = &plan, .in = in.data()}); }
};

TEST(LongPuts, AreCutAndArriveOnce) {
  Rank rank;
  EXPECT_TRUE(rank.run().ok());
  EXPECT_EQ(rank.transport.all, kBytes);
  EXPECT_EQ(rank.transport.longest, kPiece);
  EXPECT_EQ(rank.transport.puts, 1);
  EXPECT_EQ(rank.executor.movedBytes(), kBytes);
}

TEST(LongPuts, EndWithThePieceInWhichTheCallIsAborted) {
  Rank rank;
  rank.transport.meanwhile = [&] { (void)rank.watch.abort(); };
  EXPECT_EQ(rank.run().code(), Code::Aborted);
  EXPECT_EQ(rank.transport.all, kPiece);
  EXPECT_EQ(rank.transport.puts, 0);
}

}  // namespace
}  // namespace weft::engine
