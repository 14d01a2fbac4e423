// SPDX-License-Identifier: Apache-2.0
#include "engine/peer_buffers.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/unit/still_transport.h"

namespace weft::engine {
namespace {

// Shares what lies in one heap, by its offset from the byte before; so all ranks have one mapping.
class OneHeap final : public test::StillTransport {
 public:
  std::array<std::byte, 64> heap;

  OneHeap() : StillTransport(2) {}
  std::uint64_t share(const void* memory, std::size_t) const override {
    const auto* const at = static_cast<const std::byte*>(memory);
    const bool inside = at >= heap.data() && at < heap.data() + heap.size();
    return inside ? static_cast<std::uint64_t>(at - heap.data()) + 1 : 0;
  }
  std::byte* reach(std::uint32_t, std::uint64_t reference) const override {
    return const_cast<std::byte*>(heap.data()) + reference - 1;
  }
};

plan::Plan planThatShares(std::uint64_t in, std::uint64_t out) {
  plan::Plan plan;
  plan.opening = 2;
  plan.sharedIn = in;
  plan.sharedOut = out;
  return plan;
}

struct Buffers {
  OneHeap transport;
  PeerBuffers peers{transport};
  std::array<std::byte, 16> elsewhere;
};

// An all-gather reads In where it is and stores to the peers' Out: In may be anywhere.
TEST(PeerBuffers, WhatNoPeerTouchesNeedNotBeMapped) {
  Buffers b;
  const Entry gather =
      b.peers.enter(planThatShares(0, 8), b.elsewhere.data(), b.transport.heap.data() + 8);
  EXPECT_EQ(gather.willing, 1u);
  ASSERT_TRUE(b.peers.admit(1, gather));
  EXPECT_TRUE(b.peers.mapped());
  EXPECT_EQ(b.peers.address({plan::Base::PeerOut, 1, 4}), b.transport.heap.data() + 12);

  const Entry scatter =
      b.peers.enter(planThatShares(8, 0), b.transport.heap.data(), b.elsewhere.data());
  EXPECT_EQ(scatter.willing, 1u);
  ASSERT_TRUE(b.peers.admit(1, scatter));
  EXPECT_TRUE(b.peers.mapped());
}

TEST(PeerBuffers, WhatPeersTouchMustBeMappedOrCopied) {
  Buffers b;
  plan::Plan plan = planThatShares(0, 8);
  EXPECT_EQ(b.peers.enter(plan, b.transport.heap.data(), b.elsewhere.data()).willing, 0u);
  plan.cmaCopies = true;
  const Entry entry = b.peers.enter(plan, b.transport.heap.data(), b.elsewhere.data());
  EXPECT_EQ(entry.willing, 1u);
  ASSERT_TRUE(b.peers.admit(1, entry));
  EXPECT_FALSE(b.peers.mapped());
}

// The clear-to-send of direct puts.
TEST(PeerBuffers, OtherPlansTellWhereOutIs) {
  Buffers b;
  EXPECT_EQ(b.peers.enter(plan::Plan(), nullptr, b.elsewhere.data()).out, b.elsewhere.data());
}

}  // namespace
}  // namespace weft::engine
