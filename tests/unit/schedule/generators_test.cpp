// SPDX-License-Identifier: Apache-2.0
// What generators promise beyond a right result: memory, rounds, and no crowd at one peer.
#include "schedule/algorithms/generators.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "forms.h"

namespace weft::test {
using namespace schedule;
namespace {

std::vector<uint32_t> peersOf(const Program& p) {
  std::vector<uint32_t> peers;
  for (const Op& op : p.ops)
    if (op.kind == OpKind::Put) peers.push_back(op.peer);
  return peers;
}

// The k-th puts of all ranks go to different peers.
TEST(Generators, NoTwoRanksPutToOnePeerAtOnce) {
  for (const Schedule& s : {meshReduceScatter(7), meshAllGather(7), directAllToAll(7),
                            oneShotAllReduce(7), ringReduceScatter(7), ringAllGather(7)})
    for (size_t k = 0; k + 1 < s.ranks; ++k) {
      std::set<uint32_t> peers;
      for (uint32_t r = 0; r < s.ranks; ++r) peers.insert(peersOf(s.program(r)).at(k));
      EXPECT_EQ(peers.size(), s.ranks) << s.name << ", put " << k;
    }
}

TEST(Generators, CirculantTakesLogarithmicRoundsAndMovesEachBlockOnce) {
  for (uint32_t n = 1; n <= 64; ++n)
    for (const Schedule& s : {circulantReduceScatter(n), circulantAllGather(n)})
      for (uint32_t r = 0; r < n; ++r) {
        const Program p = s.program(r);
        const std::vector<uint32_t> peers = peersOf(p);
        const std::set<uint32_t> rounds(peers.begin(), peers.end());
        EXPECT_EQ(rounds.size(), static_cast<size_t>(std::bit_width(n - 1))) << s.name << " " << n;
        uint32_t sent = 0;
        for (const Op& op : p.ops) sent += op.kind == OpKind::Put ? op.chunks : 0;
        EXPECT_EQ(sent, n - 1);
      }
}

// Forms for large messages need at most three times the message, staged or not; trees, whose ranks have
// as much on its way as their links carry, four times.
TEST(Generators, ScratchMemoryIsBounded) {
  for (const Algorithm& a : algorithms()) {
    // A sum along trees has room for all that comes to a rank at once.
    const bool isForShort = a.name == "one-shot" || a.name == "binomial" ||
                            a.name.ends_with("doubling") ||
                            (a.levels == Levels::Links && a.collective == Collective::Reduce);
    if (isForShort) continue;
    for (const Shape& shape : {Shape{6, 1, 2}, Shape{16, 1, 4}, Shape{64, 1, 8}}) {
      const Schedule s = stageOut(scheduleOf(a, shape));
      const uint32_t times = a.levels == Levels::Links ? 4 : 3;
      EXPECT_LE(s.tmpChunks, times * s.logicalChunks) << s.name;
    }
  }
}

bool reads(const Program& p, const Op& op, uint32_t peer) {
  bool does = op.src.owner == peer;
  for (uint32_t k = 0; k < op.operands; ++k)
    does = does || p.operands[op.firstOperand + k].owner == peer;
  return does;
}

// Does `p` wait for anybody, or end, when it has read the peer's buffer and has not told the peer?
bool holdsUp(const Program& p, uint32_t peer) {
  bool isThrough = false;
  for (const Op& op : p.ops) {
    if (op.kind == OpKind::Wait && isThrough) return true;
    if (op.kind == OpKind::Put && op.peer == peer)
      isThrough = false;
    else if (op.kind != OpKind::Put && op.kind != OpKind::Wait)
      isThrough = isThrough || reads(p, op, peer);
  }
  return isThrough;
}

// The end of a call would else be a chain of one rank's waits and the other's.
TEST(Generators, WhoHasReadAPeersBufferTellsItBeforeWaiting) {
  for (const Algorithm& a : algorithms()) {
    if (!a.shared) continue;
    for (const uint32_t ranks : {2u, 5u}) {
      const Schedule s = scheduleOf(a, Shape{ranks, ranks - 1, 1});
      for (uint32_t me = 0; me < ranks; ++me) {
        const Program p = s.program(me);
        for (uint32_t peer = 0; peer < ranks; ++peer)
          EXPECT_FALSE(peer != me && holdsUp(p, peer))
              << s.name << ": rank " << me << " of " << ranks << ", peer " << peer;
      }
    }
  }
}

TEST(Generators, RegistryFindsEachByCollectiveAndName) {
  for (const Algorithm& a : algorithms()) {
    EXPECT_EQ(findAlgorithm(a.collective, a.name), &a);
    const Schedule s = a.make({.ranks = 6, .root = 3, .localRanks = 2});
    EXPECT_EQ(s.collective, a.collective);
    EXPECT_EQ(s.ranks, 6u);
    EXPECT_EQ(s.root, isRooted(a.collective) ? 3u : 0u);
  }
  EXPECT_EQ(findAlgorithm(Collective::Barrier, "mesh"), nullptr);
}

// One clear-to-send for each pair of writer and receiver, however many puts it covers.
TEST(Generators, ClearToSendIsSentOnce) {
  const Schedule s = awaitClearToSend(railsAllGather(4, 4, meshAllGather));
  for (uint32_t r = 0; r < s.ranks; ++r) {
    std::set<std::pair<uint32_t, uint32_t>> cleared;
    for (const Op& op : s.program(r).ops)
      if (op.kind == OpKind::Put && op.isSignal()) {
        EXPECT_TRUE(cleared.insert({op.peer, op.dst.index}).second);
      }
    EXPECT_EQ(cleared.size(), 3u + 3u);  // the others of its node and of its rail
  }
}

}  // namespace
}  // namespace weft::test
