// SPDX-License-Identifier: Apache-2.0
// weft.hpp: each wrapper once, with two ranks as threads.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>
#include <weft/weft.hpp>

namespace weft::perf {
namespace {

static_assert(std::is_nothrow_move_constructible_v<Communicator>);
static_assert(!std::is_copy_constructible_v<Communicator>);
static_assert(!std::is_copy_constructible_v<Stream>);
static_assert(kDataType<double> == weftFloat64 && kDataType<Bfloat16> == weftBfloat16);

// Runs `body` on each of two ranks.
void onTwoRanks(const std::function<void(Communicator& comm, int rank)>& body) {
  std::vector<Communicator> comms = Communicator::all(2);
  std::thread other([&] { body(comms[1], 1); });
  body(comms[0], 0);
  other.join();
}

using Ints = std::vector<std::int32_t>;

TEST(WeftHpp, Collectives) {
  onTwoRanks([](Communicator& comm, int rank) {
    ASSERT_EQ(comm.rank(), rank);
    ASSERT_EQ(comm.size(), 2);
    const Ints mine = {rank + 1, 10 * (rank + 1)};
    Ints two(2), four(4);
    comm.allReduce(mine.data(), two.data(), 2);
    EXPECT_EQ(two, (Ints{3, 30}));
    comm.allReduce(two.data(), 2, weftMax);
    EXPECT_EQ(two, (Ints{3, 30}));
    comm.allGather(mine.data(), four.data(), 2);
    EXPECT_EQ(four, (Ints{1, 10, 2, 20}));
    comm.reduceScatter(mine.data(), two.data(), 1);
    EXPECT_EQ(two[0], rank == 0 ? 3 : 30);
    comm.broadcast(mine.data(), two.data(), 2, 1);
    EXPECT_EQ(two, (Ints{2, 20}));
    comm.reduce(mine.data(), two.data(), 2, weftProd, 0);
    EXPECT_EQ(two, rank == 0 ? (Ints{2, 200}) : (Ints{2, 20}));
    comm.gather(mine.data(), four.data(), 2, 1);
    EXPECT_EQ(four, (Ints{1, 10, 2, 20}));
    comm.scatter(mine.data(), two.data(), 1, 0);
    EXPECT_EQ(two[0], rank == 0 ? 1 : 10);
    comm.allToAll(mine.data(), two.data(), 1);
    EXPECT_EQ(two, rank == 0 ? (Ints{1, 2}) : (Ints{10, 20}));
    comm.barrier();
  });
}

TEST(WeftHpp, UnevenBlocks) {
  onTwoRanks([](Communicator& comm, int rank) {
    const std::size_t counts[] = {1, 2};
    const Ints mine = {rank + 1, 10 * (rank + 1), 100 * (rank + 1)};
    Ints three(3);
    comm.allGatherV(mine.data(), three.data(), counts);
    EXPECT_EQ(three, (Ints{1, 2, 20}));
    comm.reduceScatterV(mine.data(), three.data(), counts);
    EXPECT_EQ(three[0], rank == 0 ? 3 : 30);
  });
}

TEST(WeftHpp, GroupOfSendAndReceive) {
  onTwoRanks([](Communicator& comm, int rank) {
    const double mine = rank;
    double theirs = -1;
    Group group;
    comm.send(&mine, 1, 1 - rank);
    comm.recv(&theirs, 1, 1 - rank);
    group.end();
    EXPECT_EQ(theirs, 1 - rank);
  });
}

TEST(WeftHpp, StreamsAndEvents) {
  onTwoRanks([](Communicator& comm, int) {
    Stream stream;
    Event before, after;
    float value = 1;
    before.record(stream);
    comm.allReduce(&value, 1, weftSum, {stream});
    after.record(stream);
    after.synchronize();
    stream.synchronize();
    EXPECT_EQ(value, 2);
    EXPECT_GE(after.since(before), 0);
  });
}

TEST(WeftHpp, SplitAndMove) {
  onTwoRanks([](Communicator& comm, int rank) {
    Communicator alone = comm.split(rank, 0);
    EXPECT_EQ(alone.size(), 1);
    Communicator moved = std::move(alone);
    EXPECT_EQ(moved.size(), 1);
    EXPECT_GT(comm.memory().shared, 0u);
    EXPECT_EQ(comm.asyncError(), weftSuccess);
  });
}

TEST(WeftHpp, ErrorsAreExceptionsWithText) {
  std::vector<Communicator> comms = Communicator::all(1);
  try {
    comms[0].broadcast(static_cast<const int*>(nullptr), static_cast<int*>(nullptr), 1, 7);
    FAIL() << "root 7 of one rank was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), weftInvalidArgument);
    EXPECT_FALSE(std::string(error.what()).empty());
  }
}

}  // namespace
}  // namespace weft::perf
