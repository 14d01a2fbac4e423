// SPDX-License-Identifier: Apache-2.0
// Communicators progress independently of each other, and streams keep their order.
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "world.h"

namespace weft::testing {
namespace {

class Streams : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Worlds, Streams, ::testing::Values(Kind::Threads, Kind::Processes),
                         [](const auto& p) { return nameOf(p.param); });

weftResult_t sum(std::vector<float>& data, weftComm_t comm, weftStream_t stream) {
  return weftAllReduce(data.data(), data.data(), data.size(), weftFloat, weftSum, comm, stream,
                       nullptr);
}

// Two ranks use two communicators in opposite order: only a deadlock if one waits for the other.
TEST_P(Streams, CommunicatorsInOppositeOrderDoNotDeadlock) {
  const std::string failed = failures({GetParam(), 2}, [](const Rank& r) -> std::string {
    weftComm_t comms[2] = {r.comm, nullptr};
    if (weftCommSplit(r.comm, 0, r.rank, &comms[1], nullptr) != weftSuccess)
      return std::string("split: ") + weftGetLastError(nullptr);
    weftStream_t streams[2];
    std::vector<float> data[2] = {std::vector<float>(100000, 1), std::vector<float>(100000, 1)};
    for (weftStream_t& s : streams) weftStreamCreate(&s);
    std::string text;
    for (int round = 0; round < 4; ++round) {
      for (int k = 0; k < 2; ++k) {
        const int i = r.rank == 0 ? k : 1 - k;
        sum(data[i], comms[i], streams[i]);
        if (round % 2) sleepMs(5);
      }
    }
    for (int i = 0; i < 2; ++i) {
      text += outcome(weftStreamSynchronize(streams[i]), comms[i]);
      weftStreamDestroy(streams[i]);
      if (data[i].front() != 16 || data[i].back() != 16) text += "wrong sum; ";
    }
    weftCommDestroy(comms[1]);
    return text;
  });
  EXPECT_EQ(failed, "");
}

// One communicator waits for a late rank; the other goes on.
TEST_P(Streams, BlockedCommunicatorDelaysNoOther) {
  const std::string failed = failures({GetParam(), 2}, [](const Rank& r) -> std::string {
    weftComm_t other = nullptr;
    if (weftCommSplit(r.comm, 0, r.rank, &other, nullptr) != weftSuccess)
      return std::string("split: ") + weftGetLastError(nullptr);
    weftStream_t stream = nullptr;
    weftStreamCreate(&stream);
    std::vector<float> late(10, 1), free(1000, 1);
    std::string text;
    if (r.rank == 0) text += outcome(sum(late, r.comm, stream), r.comm);
    for (int i = 0; i < 20 && text.empty(); ++i) text += outcome(sum(free, other, nullptr), other);
    if (r.rank == 0 && weftStreamQuery(stream) != weftInProgress) text += "not blocked; ";
    text += outcome(weftBarrier(other, nullptr, nullptr), other);
    if (r.rank == 1) text += outcome(sum(late, r.comm, stream), r.comm);
    text += outcome(weftStreamSynchronize(stream), r.comm);
    if (late[0] != 2) text += "wrong sum; ";
    weftStreamDestroy(stream);
    weftCommDestroy(other);
    return text;
  });
  EXPECT_EQ(failed, "");
}

// What is queued runs in order, also for a call without a stream that follows on the same
// communicator.
TEST_P(Streams, OrderIsThatOfTheCalls) {
  const std::string failed = failures({GetParam(), 3}, [](const Rank& r) -> std::string {
    weftStream_t stream = nullptr;
    weftStreamCreate(&stream);
    std::vector<float> data(5000, 1);
    for (int i = 0; i < 5; ++i) sum(data, r.comm, stream);
    std::string text = outcome(sum(data, r.comm, nullptr), r.comm);
    if (data[0] != 729 || data.back() != 729) text += "order was lost";
    text += outcome(weftStreamSynchronize(stream), r.comm);
    weftStreamDestroy(stream);
    return text;
  });
  EXPECT_EQ(failed, "");
}

void awaitPromise(void* promise) { static_cast<std::promise<void>*>(promise)->get_future().wait(); }

// Behind a stream that the application blocks.
TEST(StreamDeadline, HoldsForACallThatWaitsForItsTurn) {
  weftComm_t comm = nullptr;
  weftStream_t stream = nullptr;
  ASSERT_EQ(weftCommInitAll(&comm, 1, nullptr), weftSuccess);
  ASSERT_EQ(weftStreamCreate(&stream), weftSuccess);
  std::promise<void> release;
  ASSERT_EQ(weftStreamCallback(stream, awaitPromise, &release), weftSuccess);
  std::vector<float> queued(10, 1), data(10, 1);
  ASSERT_EQ(sum(queued, comm, stream), weftSuccess);
  weftOpts_t opts = WEFT_OPTS_INITIALIZER;
  opts.timeoutMs = 50;
  EXPECT_EQ(weftAllReduce(data.data(), data.data(), data.size(), weftFloat, weftSum, comm, nullptr,
                          &opts),
            weftTimeout);
  EXPECT_NE(std::string(weftGetLastError(nullptr)).find("before its turn"), std::string::npos)
      << weftGetLastError(nullptr);
  release.set_value();
  EXPECT_EQ(weftStreamSynchronize(stream), weftTimeout) << "the communicator has ended";
  EXPECT_EQ(weftStreamDestroy(stream), weftSuccess);
  EXPECT_EQ(weftCommDestroy(comm), weftSuccess);
}

TEST(StreamDeadline, HoldsForFinalize) {
  weftComm_t comm = nullptr;
  weftStream_t stream = nullptr;
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  config.timeoutMs = 50;
  ASSERT_EQ(weftCommInitAllConfig(&comm, 1, nullptr, &config), weftSuccess);
  ASSERT_EQ(weftStreamCreate(&stream), weftSuccess);
  std::promise<void> release;
  ASSERT_EQ(weftStreamCallback(stream, awaitPromise, &release), weftSuccess);
  std::vector<float> queued(10, 1);
  ASSERT_EQ(sum(queued, comm, stream), weftSuccess);
  EXPECT_EQ(weftCommFinalize(comm), weftTimeout);
  EXPECT_NE(std::string(weftGetLastError(nullptr))
                .find("queued calls did not end within 50 ms; fix: weftCommAbort"),
            std::string::npos)
      << weftGetLastError(nullptr);
  release.set_value();
  EXPECT_EQ(weftStreamSynchronize(stream), weftSuccess) << weftGetLastError(nullptr);
  EXPECT_EQ(weftCommFinalize(comm), weftSuccess);
  EXPECT_EQ(weftStreamDestroy(stream), weftSuccess);
  EXPECT_EQ(weftCommDestroy(comm), weftSuccess);
}

}  // namespace
}  // namespace weft::testing
