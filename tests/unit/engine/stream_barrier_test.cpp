// SPDX-License-Identifier: Apache-2.0
#include "engine/work_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace weft::engine {
namespace {

TEST(StreamBarrier, StreamsWaitForTheWorkAndTakeItsResult) {
  StreamBarrier barrier(2);
  WorkStream one, other;
  EXPECT_FALSE(barrier.awaitStreams(Deadline::in(1)));
  one.enqueue([&] { return barrier.pass(); });
  EXPECT_FALSE(barrier.awaitStreams(Deadline::in(1)));
  other.enqueue([&] { return barrier.pass(); });
  EXPECT_TRUE(barrier.awaitStreams(Deadline::in(60000)));
  Status first;
  EXPECT_FALSE(one.query(&first));
  barrier.open(Status::error(Code::Timeout, "late"));
  EXPECT_EQ(one.synchronize().code(), Code::Timeout);
  EXPECT_EQ(other.synchronize().code(), Code::Timeout);
}

TEST(StreamBarrier, LetsThroughWhoComesAfterTheWork) {
  StreamBarrier barrier(1);
  barrier.open({});
  EXPECT_TRUE(barrier.pass().ok());
}

// Two threads, two streams that meet: were the pieces queued one by one, each stream could have
// another thread's piece in front, and both would wait for ever.
TEST(WorkStream, PiecesQueuedTogetherAreInTheSameOrderEverywhere) {
  WorkStream one, other;
  const auto meet = [](WorkStream& leading, WorkStream& following) {
    for (int i = 0; i < 2000; ++i) {
      const auto at = std::make_shared<StreamBarrier>(1);
      WorkStream::enqueueTogether({{&leading,
                                    [at]() -> Status {
                                      while (!at->awaitStreams(Deadline::in(60000))) {
                                      }
                                      at->open({});
                                      return {};
                                    }},
                                   {&following, [at] { return at->pass(); }}});
    }
  };
  std::thread opposite([&] { meet(other, one); });
  meet(one, other);
  opposite.join();
  EXPECT_TRUE(one.synchronize().ok());
  EXPECT_TRUE(other.synchronize().ok());
}

}  // namespace
}  // namespace weft::engine
