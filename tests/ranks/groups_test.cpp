// SPDX-License-Identifier: Apache-2.0
// Groups, and the sends and receives that need them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "messages.h"
#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

// Around what fits into an arrival slot (48) and into a staging slot (64 KiB), and many slots.
const std::vector<std::size_t> kSizes = {0,     1,     48,    49,    16384,
                                         16385, 65535, 65536, 65537, (3 << 20) + 5};

weftResult_t send(const Bytes& data, int to, weftComm_t comm, weftStream_t stream = nullptr) {
  return weftSend(data.data(), data.size(), weftUint8, to, comm, stream, nullptr);
}
weftResult_t receive(Bytes& data, int from, weftComm_t comm, weftStream_t stream = nullptr) {
  return weftRecv(data.data(), data.size(), weftUint8, from, comm, stream, nullptr);
}

int right(const Rank& r) { return (r.rank + 1) % r.ranks; }
int left(const Rank& r) { return (r.rank + r.ranks - 1) % r.ranks; }

class Groups : public ::testing::TestWithParam<World> {
 protected:
  void onEveryRank(const Body& body) { EXPECT_EQ(failures(GetParam(), body), ""); }
};

TEST_P(Groups, RingOfEverySize) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    for (const std::size_t bytes : kSizes) {
      const Bytes out = message(r.rank, right(r), bytes, bytes);
      Bytes in(bytes);
      steps.ok(weftGroupStart(), "start");
      steps.ok(send(out, right(r), r.comm), "send");
      steps.ok(receive(in, left(r), r.comm), "receive");
      steps.ok(weftGroupEnd(), "end");
      steps.expect(in == message(left(r), r.rank, bytes, bytes), "wrong " + std::to_string(bytes));
    }
    return steps.failed();
  });
}

// Every rank to every rank, itself included, messages of all sizes in one group.
TEST_P(Groups, AllPairsAtOnce) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    std::vector<std::vector<Bytes>> out, in;
    for (int peer = 0; peer < r.ranks; ++peer) {
      out.emplace_back(), in.emplace_back();
      for (std::size_t k = 0; k < kSizes.size(); ++k) {
        out.back().push_back(message(r.rank, peer, k, kSizes[k]));
        in.back().emplace_back(kSizes[k]);
      }
    }
    steps.ok(weftGroupStart(), "start");
    for (std::size_t peer = 0; peer < out.size(); ++peer) {
      for (const Bytes& data : out[peer])
        steps.ok(send(data, static_cast<int>(peer), r.comm), "send");
      for (Bytes& data : in[peer])
        steps.ok(receive(data, static_cast<int>(peer), r.comm), "receive");
    }
    steps.ok(weftGroupEnd(), "end");
    for (std::size_t peer = 0; peer < in.size(); ++peer) {
      for (std::size_t k = 0; k < kSizes.size(); ++k)
        steps.expect(in[peer][k] == message(static_cast<int>(peer), r.rank, k, kSizes[k]),
                     "wrong message " + std::to_string(k) + " from " + std::to_string(peer));
    }
    return steps.failed();
  });
}

// Messages of a pair arrive in the order of the sends, however either side groups them.
TEST_P(Groups, MessagesOfAPairKeepTheirOrder) {
  onEveryRank([](const Rank& r) {
    constexpr std::size_t kMessages = 60;
    Steps steps;
    const auto sizeOf = [](std::size_t k) {
      return k * k * 97 % 3000 + (k % 20 == 7 ? 200000 : 0);
    };
    if (r.rank == 0) {
      for (std::size_t k = 0; k < kMessages; ++k) {
        for (int to = 1; to < r.ranks; ++to)
          steps.ok(send(message(0, to, k, sizeOf(k)), to, r.comm), "send");
      }
      return steps.failed();
    }
    std::vector<Bytes> in;
    for (std::size_t k = 0; k < kMessages; ++k) in.emplace_back(sizeOf(k));
    for (std::size_t k = 0; k < kMessages;) {
      weftGroupStart();
      for (const std::size_t end = std::min(k + 7, kMessages); k < end; ++k)
        steps.ok(receive(in[k], 0, r.comm), "receive");
      steps.ok(weftGroupEnd(), "end");
    }
    for (std::size_t k = 0; k < kMessages; ++k)
      steps.expect(in[k] == message(0, r.rank, k, sizeOf(k)), "wrong message " + std::to_string(k));
    return steps.failed();
  });
}

TEST_P(Groups, CollectivesAndTransfersTogether) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const std::uint64_t n = static_cast<std::uint64_t>(r.ranks);
    for (int i = 0; i < 10; ++i) {
      std::vector<std::uint64_t> sums(5000, 1), all(n);
      const std::uint64_t mine = static_cast<std::uint64_t>(r.rank);
      const Bytes out = message(r.rank, right(r), 1, 300000);
      Bytes in(out.size());
      weftGroupStart();
      steps.ok(weftAllReduce(sums.data(), sums.data(), sums.size(), weftUint64, weftSum, r.comm,
                             nullptr, nullptr),
               "sum");
      steps.ok(send(out, right(r), r.comm), "send");
      steps.ok(weftAllGather(&mine, all.data(), 1, weftUint64, r.comm, nullptr, nullptr), "gather");
      steps.ok(receive(in, left(r), r.comm), "receive");
      steps.ok(weftGroupEnd(), "end");
      steps.expect(in == message(left(r), r.rank, 1, in.size()), "wrong message");
      steps.expect(sums == std::vector<std::uint64_t>(sums.size(), n), "wrong sums");
      for (std::uint64_t k = 0; k < n; ++k) steps.expect(all[k] == k, "wrong gather");
    }
    return steps.failed();
  });
}

// Nothing starts before the outermost end, and everything is finished after it.
TEST_P(Groups, NestedGroupsStartAtTheOutermostEnd) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const Bytes out = message(r.rank, right(r), 0, 500000);
    Bytes in(out.size());
    weftGroupStart();
    steps.ok(send(out, right(r), r.comm), "send");
    weftGroupStart();
    steps.ok(receive(in, left(r), r.comm), "receive");
    steps.ok(weftGroupEnd(), "inner end");
    steps.expect(in == Bytes(in.size()), "the inner end delivered");
    steps.ok(weftGroupEnd(), "outer end");
    steps.expect(in == message(left(r), r.rank, 0, in.size()), "wrong message");
    steps.gives(weftInvalidUsage, weftGroupEnd(), "an end too many");
    weftGroupStart();
    steps.ok(weftGroupEnd(), "an empty group");
    return steps.failed();
  });
}

TEST_P(Groups, OnAStream) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const Stream stream(steps);
    std::vector<Bytes> out, in;
    for (std::size_t k = 0; k < 10; ++k) {
      out.push_back(message(r.rank, right(r), k, 100000));
      in.emplace_back(out[k].size());
    }
    for (std::size_t k = 0; k < out.size(); ++k) {
      weftGroupStart();
      steps.ok(send(out[k], right(r), r.comm, stream), "send");
      steps.ok(receive(in[k], left(r), r.comm, stream), "receive");
      steps.ok(weftGroupEnd(), "end");
    }
    steps.ok(weftStreamSynchronize(stream), "synchronize");
    for (std::size_t k = 0; k < in.size(); ++k)
      steps.expect(in[k] == message(left(r), r.rank, k, in[k].size()), "wrong message");
    return steps.failed();
  });
}

// As two batches, each rank's send would hold up the receive that the other's send waits for.
TEST_P(Groups, SendAndReceiveOnTwoStreams) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const Stream sending(steps), receiving(steps);
    const Bytes out = message(r.rank, right(r), 0, 3 << 20);
    Bytes in(out.size());
    for (int i = 0; i < 3; ++i) {
      // The streams do their parts in different orders.
      const bool swapped = (r.rank + i) % 2 != 0;
      std::fill(in.begin(), in.end(), std::uint8_t{0});
      weftGroupStart();
      if (!swapped) steps.ok(send(out, right(r), r.comm, sending), "send");
      steps.ok(receive(in, left(r), r.comm, receiving), "receive");
      if (swapped) steps.ok(send(out, right(r), r.comm, sending), "send");
      steps.ok(weftGroupEnd(), "end");
      steps.ok(weftStreamSynchronize(receiving), "synchronize the receives");
      steps.expect(in == message(left(r), r.rank, 0, in.size()), "wrong message");
      steps.ok(weftStreamSynchronize(sending), "synchronize the sends");
    }
    return steps.failed();
  });
}

TEST_P(Groups, MessagesOfAPairKeepTheirOrderAcrossStreams) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const Stream one(steps), other(steps);
    const std::array<weftStream_t, 3> streams = {one, other, nullptr};
    std::vector<Bytes> out, in(9, Bytes(70000));
    for (std::size_t k = 0; k < in.size(); ++k)
      out.push_back(message(r.rank, right(r), k, in[k].size()));
    weftGroupStart();
    for (std::size_t k = 0; k < in.size(); ++k) {
      steps.ok(send(out[k], right(r), r.comm, streams[k % 3]), "send");
      steps.ok(receive(in[k], left(r), r.comm, streams[(k + static_cast<std::size_t>(r.rank)) % 3]),
               "receive");
    }
    steps.ok(weftGroupEnd(), "end");  // some have no stream: then all are done
    for (std::size_t k = 0; k < in.size(); ++k)
      steps.expect(in[k] == message(left(r), r.rank, k, in[k].size()),
                   "wrong message " + std::to_string(k));
    steps.ok(weftStreamSynchronize(one), "synchronize one");
    steps.ok(weftStreamSynchronize(other), "synchronize the other");
    return steps.failed();
  });
}

// What stands before and after a group in either of its streams runs before and after it.
TEST_P(Groups, StreamsOfAGroupStayInOrder) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const Stream one(steps), other(steps);
    std::vector<std::uint64_t> mine(60000, 1), theirs(mine.size()), sums(mine.size());
    const auto addUp = [&](const auto& x, auto& y, weftStream_t stream) {
      steps.ok(
          weftAllReduce(x.data(), y.data(), x.size(), weftUint64, weftSum, r.comm, stream, nullptr),
          "sum");
    };
    addUp(mine, mine, one);
    weftGroupStart();
    steps.ok(weftSend(mine.data(), mine.size(), weftUint64, right(r), r.comm, one, nullptr),
             "send");
    steps.ok(weftRecv(theirs.data(), theirs.size(), weftUint64, left(r), r.comm, other, nullptr),
             "receive");
    steps.ok(weftGroupEnd(), "end");
    addUp(theirs, sums, other);
    steps.ok(weftStreamSynchronize(other), "synchronize the other");
    const std::uint64_t n = static_cast<std::uint64_t>(r.ranks);
    steps.expect(sums == std::vector<std::uint64_t>(sums.size(), n * n), "wrong sums");
    steps.ok(weftStreamSynchronize(one), "synchronize one");
    return steps.failed();
  });
}

// One of its streams may be held up by the application: abort ends what waits for it.
TEST_P(Groups, AbortEndsTheWaitForAStream) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const Stream one(steps), other(steps);
    std::atomic<bool> released{false};
    const auto hold = [](void* flag) {
      while (!static_cast<std::atomic<bool>*>(flag)->load()) sleepMs(1);
    };
    Bytes out(10), in(10);
    steps.ok(weftStreamCallback(other, hold, &released), "callback");
    weftGroupStart();
    steps.ok(send(out, right(r), r.comm, one), "send");
    steps.ok(receive(in, left(r), r.comm, other), "receive");
    steps.ok(weftGroupEnd(), "end");
    steps.ok(weftCommAbort(r.comm), "abort");
    steps.gives(weftAborted, weftStreamSynchronize(one), "synchronize one");
    released = true;
    steps.gives(weftAborted, weftStreamSynchronize(other), "synchronize the other");
    return steps.failed();
  });
}

TEST_P(Groups, ArgumentErrorsAreReportedByTheCallAndTheRestRuns) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const Bytes out = message(r.rank, right(r), 0, 1000);
    Bytes in(out.size());
    weftGroupStart();
    steps.gives(weftInvalidArgument, send(out, r.ranks, r.comm), "no such peer");
    steps.ok(send(out, right(r), r.comm), "send");
    steps.gives(weftInvalidArgument, weftRecv(nullptr, 5, weftUint8, 0, r.comm, nullptr, nullptr),
                "no buffer");
    steps.gives(weftInvalidArgument, send(out, 0, nullptr), "no comm");
    steps.ok(receive(in, left(r), r.comm), "receive");
    steps.ok(weftGroupEnd(), "end");
    steps.expect(in == message(left(r), r.rank, 0, in.size()), "wrong message");
    steps.ok(weftBarrier(r.comm, nullptr, nullptr), "barrier");
    return steps.failed();
  });
}

TEST_P(Groups, SendsToOneselfMustBeMatched) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const Bytes out = message(r.rank, r.rank, 0, 1000);
    Bytes in(1000), small(999);
    steps.gives(weftInvalidUsage, send(out, r.rank, r.comm), "a send alone");
    steps.gives(weftInvalidUsage, receive(in, r.rank, r.comm), "a receive alone");
    weftGroupStart();
    send(out, r.rank, r.comm);
    receive(small, r.rank, r.comm);
    steps.gives(weftInvalidUsage, weftGroupEnd(), "different counts");
    weftGroupStart();
    receive(in, r.rank, r.comm);
    send(out, r.rank, r.comm);
    steps.ok(weftGroupEnd(), "a matched pair");
    steps.expect(in == out, "wrong message");
    steps.ok(weftBarrier(r.comm, nullptr, nullptr), "barrier");
    return steps.failed();
  });
}

TEST_P(Groups, ReturnTheFirstError) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    std::uint64_t one = 1, all = 0;
    std::vector<std::uint64_t> many(2, 1);
    weftGroupStart();
    steps.ok(weftAllReduce(&one, &all, 1, weftUint64, weftSum, r.comm, nullptr, nullptr), "sum");
    steps.ok(weftAllReduce(many.data(), many.data(), r.rank == 0 ? 1 : 2, weftUint64, weftSum,
                           r.comm, nullptr, nullptr),
             "sums of different counts");
    steps.ok(weftBarrier(r.comm, nullptr, nullptr), "barrier");
    steps.gives(weftMismatch, weftGroupEnd(), "end");
    steps.gives(weftMismatch, weftBarrier(r.comm, nullptr, nullptr), "afterwards");
    return steps.failed();
  });
}

std::string nameOfWorld(const ::testing::TestParamInfo<World>& info) {
  const bool faulty = info.param.transport != std::string("auto");
  return nameOf(info.param.kind) + std::to_string(info.param.ranks) + (faulty ? "faulty" : "");
}
INSTANTIATE_TEST_SUITE_P(Worlds, Groups,
                         ::testing::Values(World{Kind::Threads, 2}, World{Kind::Threads, 5},
                                           World{Kind::Processes, 2}, World{Kind::Processes, 4},
                                           World{Kind::Threads, 3, "faulty:3"},
                                           World{Kind::Processes, 2, "faulty:3"}),
                         nameOfWorld);

// ---- One thread, several ranks ----------------------------------------------------------------

// As a single-threaded program does it: init, collectives and transfers of all its ranks in groups.
class OneThread : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    weftUniqueId id;
    steps_.ok(weftGetUniqueId(&id), "id");
    weftGroupStart();
    for (std::size_t r = 0; r < comms_.size(); ++r)
      steps_.ok(weftCommInitRank(&comms_[r], ranks_, id, static_cast<int>(r)), "init");
    steps_.ok(weftGroupEnd(), "end of the inits");
    ASSERT_EQ(steps_.failed(), "");
  }
  void TearDown() override {
    for (const weftComm_t comm : comms_) EXPECT_EQ(weftCommDestroy(comm), weftSuccess);
    EXPECT_EQ(steps_.failed(), "");
  }

  const int ranks_ = GetParam();
  std::vector<weftComm_t> comms_ = std::vector<weftComm_t>(static_cast<std::size_t>(ranks_));
  Steps steps_;
};

TEST_P(OneThread, TwoCollectivesOfEveryRankInOneGroup) {
  constexpr std::size_t kCount = 30000;
  std::vector<std::vector<std::uint64_t>> x(comms_.size(), std::vector<std::uint64_t>(kCount, 1));
  for (int round = 1; round <= 3; ++round) {
    weftGroupStart();
    for (int twice = 0; twice < 2; ++twice) {
      for (std::size_t r = 0; r < comms_.size(); ++r)
        steps_.ok(weftAllReduce(x[r].data(), x[r].data(), kCount, weftUint64, weftSum, comms_[r],
                                nullptr, nullptr),
                  "sum");
    }
    steps_.ok(weftGroupEnd(), "end");
  }
  std::uint64_t wanted = 1;
  for (int i = 0; i < 6; ++i) wanted *= static_cast<std::uint64_t>(ranks_);
  for (const auto& sums : x) EXPECT_EQ(sums, std::vector<std::uint64_t>(kCount, wanted));
}

TEST_P(OneThread, RingOfAllItsRanks) {
  std::vector<Bytes> in(comms_.size(), Bytes(400000)), out;
  for (int r = 0; r < ranks_; ++r) out.push_back(message(r, (r + 1) % ranks_, 0, 400000));
  weftGroupStart();
  for (int r = 0; r < ranks_; ++r) {
    const std::size_t at = static_cast<std::size_t>(r);
    steps_.ok(send(out[at], (r + 1) % ranks_, comms_[at]), "send");
    steps_.ok(receive(in[at], (r + ranks_ - 1) % ranks_, comms_[at]), "receive");
  }
  steps_.ok(weftGroupEnd(), "end");
  for (int r = 0; r < ranks_; ++r)
    EXPECT_TRUE(in[static_cast<std::size_t>((r + 1) % ranks_)] ==
                message(r, (r + 1) % ranks_, 0, 400000));
}

TEST_P(OneThread, AStreamForEachRank) {
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::uint64_t> sums(comms_.size(), 1);
  for (std::size_t r = 0; r < comms_.size(); ++r)
    streams.push_back(std::make_unique<Stream>(steps_));
  // On streams, no group is needed.
  for (std::size_t r = 0; r < comms_.size(); ++r)
    steps_.ok(
        weftAllReduce(&sums[r], &sums[r], 1, weftUint64, weftSum, comms_[r], *streams[r], nullptr),
        "sum");
  for (const auto& stream : streams) steps_.ok(weftStreamSynchronize(*stream), "synchronize");
  EXPECT_EQ(sums, std::vector<std::uint64_t>(comms_.size(), static_cast<std::uint64_t>(ranks_)));
}

INSTANTIATE_TEST_SUITE_P(Ranks, OneThread, ::testing::Values(1, 2, 4, 7),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace weft::testing
