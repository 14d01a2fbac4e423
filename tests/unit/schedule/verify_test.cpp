// SPDX-License-Identifier: Apache-2.0
// What the verifier must refuse, one small wrong schedule each.
#include "verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "forms.h"
#include "schedule/algorithms/generators.h"

namespace weft::test {
using namespace schedule;
namespace {

using Build = std::function<void(Program&, uint32_t me)>;

// All-gather of two ranks, one block each: Tmp(0), Tmp(1) and Signal(0) to play with.
Schedule pairGather(Build build) {
  return {.name = "test",
          .collective = Collective::AllGather,
          .ranks = 2,
          .inChunks = 1,
          .outChunks = 2,
          .tmpChunks = 2,
          .signals = 1,
          .logicalChunks = 2,
          .program = [build = std::move(build)](uint32_t me) {
            Program p;
            build(p, me);
            return p;
          }};
}

// The right way, for tests that add something wrong to it.
void exchange(Program& p, uint32_t me) {
  p.put(1 - me, in(0), out(me), {me});
  p.copy(in(0), out(me), {me});
  p.wait(1 - me, out(1 - me), {1 - me});
}

void expectRefused(const Schedule& s, const char* words,
                   const verify::VerifyOptions& options = {}) {
  const Status status = verify::verify(s, options);
  ASSERT_FALSE(status.ok()) << "accepted, expected: " << words;
  EXPECT_NE(status.text().find(words), std::string::npos) << status.text();
  EXPECT_NE(status.text().find(s.name), std::string::npos) << status.text();
}

TEST(Verify, AcceptsTheRightOne) {
  const Status status = verify::verify(pairGather(exchange));
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Verify, Links) {
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  exchange(p, me);
                  if (me == 0) p.put(1, in(0), tmp(0), {0});
                }),
                "never waited for");
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  exchange(p, me);
                  p.wait(1 - me, tmp(0), {0});
                }),
                "waits for ever");
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  exchange(p, me);
                  p.wait(1 - me, out(1 - me), {1 - me});
                }),
                "waited for this arrival already");
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  exchange(p, me);
                  p.put(1 - me, in(0), out(me), {me});
                }),
                "raises the same arrival");
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  exchange(p, me);
                  p.copy(in(0), tmp(2), {me});
                }),
                "has no Tmp(2)");
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  exchange(p, me);
                  p.copy(out(0), in(0), {me});
                }),
                "In is never written");
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  exchange(p, me);
                  p.put(me, in(0), tmp(0), {me});
                  p.wait(me, tmp(0), {me});
                }),
                "only to other ranks");
}

// The right way, and then one op that says what no op may.
void expectOpRefused(const Op& wrong, const char* words) {
  expectRefused(pairGather([wrong](Program& p, uint32_t me) {
                  exchange(p, me);
                  p.operands = {in(0), out(0)};
                  if (me == 0) p.ops.push_back(wrong);
                }),
                words);
}

TEST(Verify, SingleOps) {
  constexpr Slot kPeers{Buf::Out, 0, 1};
  expectOpRefused({.kind = OpKind::Copy, .src = kPeers, .dst = tmp(0), .chunks = 1},
                  "of other ranks, only their In may be read");
  expectOpRefused({.kind = OpKind::Apply, .src = inOf(1, 0), .dst = tmp(0), .chunks = 1},
                  "only Copy and Reduce may name a peer's slot");
  expectOpRefused({.kind = OpKind::Copy, .src = in(0), .dst = signalSlot(0), .chunks = 1},
                  "a Signal slot has no bytes");
  expectOpRefused({.kind = OpKind::Copy, .src = in(0), .dst = tmp(0), .chunks = 3},
                  "there are only 2 logical chunks");
  expectOpRefused({.kind = OpKind::Copy, .src = tmp(0), .dst = tmp(1), .chunks = 2}, "has no Tmp");
  expectOpRefused({.kind = OpKind::Copy, .src = in(0), .dst = signalSlot(0)},
                  "only Put and Wait may have no chunks");
  expectOpRefused({.kind = OpKind::Put, .peer = 1, .dst = tmp(0)},
                  "a signal goes to a Signal slot");
  expectOpRefused({.kind = OpKind::Reduce, .dst = tmp(0), .chunks = 1, .operands = 1},
                  "needs two operands or more");
}

TEST(Verify, RunsThatOverlapPartially) {
  Schedule s = pairGather([](Program& p, uint32_t me) {
    exchange(p, me);
    p.copy(out(0), tmp(0), {0, 2});
    p.copy(tmp(0), tmp(1), {0, 2});
  });
  s.tmpChunks = 3;
  expectRefused(s, "source and target overlap partially");
  s = pairGather([](Program& p, uint32_t me) {
    exchange(p, me);
    p.copy(out(0), tmp(0), {0, 2});
    p.reduce(tmp(1), {out(0), tmp(0)}, {0, 2});
  });
  s.tmpChunks = 3;
  expectRefused(s, "operand 1 overlaps the target partially");
}

// In and Out are the same memory: nothing is read of In that has been written as Out.
TEST(Verify, InPlace) {
  const verify::VerifyOptions inPlace{.inPlace = true};
  const Status right = verify::verify(pairGather(exchange), inPlace);
  EXPECT_TRUE(right.ok()) << right.text();
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  exchange(p, me);
                  p.copy(in(0), tmp(0), {me});
                }),
                "in place, In(0) has been overwritten as Out(0)", inPlace);
}

// So are all of weft's own, with their puts staged.
TEST(Verify, AllAlgorithmsMayBeInPlace) {
  for (const Algorithm& a : algorithms()) {
    if (a.shared || a.levels != Levels::One) continue;
    const Status proved =
        verify::verify(stageOut(a.make({.ranks = 6, .root = 2})), {.inPlace = true});
    EXPECT_TRUE(proved.ok()) << proved.text();
  }
}

TEST(Verify, WaitsNameWhoPuts) {
  Schedule s = meshAllGather(3);
  s.program = [inner = s.program](uint32_t me) {
    Program p = inner(me);
    const auto wait = std::ranges::find(p.ops, OpKind::Wait, &Op::kind);
    if (me == 0) wait->peer = 3 - wait->peer;
    return p;
  };
  expectRefused(s, "but rank 2 puts there");
}

TEST(Verify, RunsAndLengthsAgreeAtBothEnds) {
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  exchange(p, me);
                  if (me == 0) p.put(1, out(0), tmp(0), {0, 2});
                  if (me == 1) p.wait(0, tmp(0), {0, 1});
                }),
                "is not the run of");
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  exchange(p, me);
                  if (me == 0) p.put(1, in(0), tmp(0), {0});
                  if (me == 1) p.wait(0, tmp(0), {1});
                }),
                "expects logical chunk 1");
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  exchange(p, me);
                  p.copy(out(0), tmp(0), {1});
                }),
                "holds logical chunk 0, not 1");
}

TEST(Verify, Deadlock) {
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  p.waitSignal(1 - me, 0);
                  p.signal(1 - me, 0);
                  exchange(p, me);
                }),
                "deadlock");
}

TEST(Verify, Results) {
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  p.put(1 - me, in(0), out(me), {me});
                  p.wait(1 - me, out(1 - me), {1 - me});
                }),
                "Out(0) was never written");
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  if (me == 1) p.copy(out(0), tmp(0), {0});  // rank 0 has put it by then
                  exchange(p, me);
                }),
                "before its Wait");
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  exchange(p, me);
                  p.copy(tmp(1), tmp(0), {me});
                }),
                "Tmp(1), never written");
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  exchange(p, me);
                  p.copy(in(0), out(me), {me});
                }),
                "written already");
}

// Sums: a part missing, finished early or twice, not at all.
Schedule pairSum(Build atRankZero) {
  Schedule s = oneShotReduce(2, 0);
  s.name = "test";
  s.program = [inner = s.program, build = std::move(atRankZero)](uint32_t me) {
    if (me == 1) return inner(me);
    Program p;
    p.wait(1, tmp(1), {0});
    build(p, me);
    return p;
  };
  return s;
}

TEST(Verify, Sums) {
  expectRefused(pairSum([](Program& p, uint32_t) {
                  p.copy(in(0), out(0), {0});
                  p.apply(ApplyId::Finish, out(0), out(0), {0});
                }),
                "incomplete sum");
  expectRefused(pairSum([](Program& p, uint32_t) {
                  p.reduce(out(0), {in(0), tmp(1)}, {0});
                  p.apply(ApplyId::Finish, out(0), out(0), {0});
                  p.apply(ApplyId::Finish, out(0), out(0), {0});
                }),
                "finishes a sum twice");
  expectRefused(pairSum([](Program& p, uint32_t) {
                  p.reduce(out(0), {in(0), tmp(1)}, {0});
                }),
                "is not finished");
  expectRefused(pairSum([](Program& p, uint32_t) {
                  p.reduce(out(0), {in(0), tmp(1), tmp(1)}, {0});
                }),
                "doubles");
}

TEST(Verify, Scales) {
  Schedule s = prescale(ringReduceScatter(2));
  s.scaled = false;
  expectRefused(s, "is not scaled as it should be");
  expectRefused(pairSum([](Program& p, uint32_t) {
                  p.reduce(out(0), {in(0), tmp(1)}, {0});
                  p.apply(ApplyId::Scale, out(0), out(0), {0});
                }),
                "scales what is not an input");
}

TEST(Verify, BlocksOfTheWrongRank) {
  Schedule s = directAllToAll(3);
  s.program = [inner = s.program](uint32_t me) {
    Program p = inner(me);
    for (Op& op : p.ops)
      if (op.kind == OpKind::Put) op.src = in(me);
    return p;
  };
  expectRefused(s, "holds another chunk");
}

TEST(Verify, OrderOfAdditions) {
  expectRefused(ringAllReduce(5), "not the sum in rank order", {.order = SumOrder::Rank});
  Schedule s = oneShotAllReduce(3);
  s.program = [inner = s.program](uint32_t me) {
    Program p = inner(me);
    if (me == 2) std::swap(p.operands[1], p.operands[2]);
    return p;
  };
  expectRefused(s, "other bits than on rank 0");
}

TEST(Verify, BuffersThatOnlyTheRootHas) {
  Schedule s = directBroadcast(2, 0);
  s.program = [inner = s.program](uint32_t me) {
    Program p = inner(me);
    if (me == 1) p.copy(in(0), tmp(0), {0});
    return p;
  };
  s.tmpChunks = 1;
  expectRefused(s, "rank 1 has no In(0)");
  s = directGather(2, 0);
  s.program = [inner = s.program](uint32_t me) {
    Program p = inner(me);
    if (me == 1) p.copy(in(0), out(1), {1});
    return p;
  };
  expectRefused(s, "rank 1 has no Out(1)");
}

// Overwriting what a Put may still be reading, though in the walked order it has long been read.
TEST(Verify, LocalWriteUnderAnAsynchronousPut) {
  expectRefused(pairGather([](Program& p, uint32_t me) {
                  p.copy(in(0), tmp(0), {me});
                  if (me == 0) p.put(1, tmp(0), tmp(1), {0});
                  p.reduce(tmp(0), {tmp(0), tmp(0)}, {me});
                  if (me == 1) p.wait(0, tmp(1), {0});
                  exchange(p, me);
                }),
                "write races with the read");
}

TEST(Verify, Promises) {
  expectRefused(directBroadcast(4, 1), "may complete before rank", {.agreement = true});
  expectRefused(meshAllGather(3), "before its owner has entered", {.outAfterEntry = true});
}

// A peer's In may be read once it has entered: here the sum goes before the last news of an entry.
TEST(Verify, SharedBuffersAreNotReadEarly) {
  Schedule s = sharedReduceScatter(3);
  s.program = [inner = s.program](uint32_t me) {
    Program p = inner(me);
    if (me != 1) return p;
    const auto sum = std::ranges::find(p.ops, OpKind::Reduce, &Op::kind);
    std::iter_swap(sum, sum - 1);
    return p;
  };
  expectRefused(s, "before its owner has entered");
}

// Nor after its owner may have left: here nobody tells that it has read.
TEST(Verify, SharedBuffersAreNotReadLate) {
  Schedule s = sharedReduceScatter(3);
  s.program = [inner = s.program](uint32_t me) {
    Program p = inner(me);
    const auto sum = std::ranges::find(p.ops, OpKind::Reduce, &Op::kind);
    std::erase_if(p.ops, [&, after = &*sum](const Op& op) { return &op > after && op.isSignal(); });
    return p;
  };
  expectRefused(s, "may complete before this has read its In");
}

// The first Wait of a barrier moved behind its second signal: no slot is wrong, but the news is
// late.
TEST(Verify, BarrierThatDoesNotHold) {
  Schedule s = disseminationBarrier(4);
  s.program = [inner = s.program](uint32_t me) {
    Program p = inner(me);
    if (me == 0) std::swap(p.ops[1], p.ops[2]);
    return p;
  };
  expectRefused(s, "may complete before rank", {.agreement = true});
}

}  // namespace
}  // namespace weft::test
