// SPDX-License-Identifier: Apache-2.0
#include "engine/work_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

namespace weft::engine {
namespace {

// What weftEventRecord and weftStreamWaitEvent do.
void record(WorkEvent& event, WorkStream& stream) {
  stream.enqueue([made = event.record()]() -> Status {
    made->pass();
    return {};
  });
}
void waitFor(const WorkEvent& event, WorkStream& stream) {
  stream.enqueue([awaited = event.latest()]() -> Status {
    awaited->wait();
    return {};
  });
}

// Recorded again elsewhere meanwhile, and passed there.
TEST(WorkEvent, AWaitIsForTheRecordThatWasTheLatest) {
  WorkStream busy, idle, waiting;
  WorkEvent event;
  std::promise<void> release;
  std::atomic<bool> worked{false}, early{false};
  busy.enqueue([&]() -> Status {
    release.get_future().wait();
    worked = true;
    return {};
  });
  record(event, busy);
  waitFor(event, waiting);
  waiting.enqueue([&]() -> Status {
    early = !worked;
    return {};
  });
  record(event, idle);
  EXPECT_TRUE(idle.synchronize().ok());
  EXPECT_TRUE(event.latest()->passed());
  Status first;
  EXPECT_FALSE(waiting.query(&first));
  release.set_value();
  EXPECT_TRUE(waiting.synchronize().ok());
  EXPECT_FALSE(early);
}

TEST(WorkEvent, PassesWhenTheStreamGetsThere) {
  WorkEvent event;
  EXPECT_EQ(event.latest(), nullptr) << "never recorded: nothing to wait for";
  const auto made = event.record();
  EventRecord::Clock::time_point when;
  EXPECT_FALSE(made->passed());
  EXPECT_FALSE(made->time(&when));
  std::thread later([&] { made->pass(); });
  event.latest()->wait();
  EXPECT_TRUE(made->passed());
  EXPECT_TRUE(made->time(&when));
  later.join();
}

TEST(WorkStream, RunsInOrderAndKeepsTheFirstError) {
  WorkStream stream;
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    stream.enqueue([&order, i]() -> Status {
      order.push_back(i);
      if (i == 10) return Status::error(Code::Timeout, "ten");
      if (i == 20) return Status::error(Code::Mismatch, "twenty");
      return {};
    });
  }
  EXPECT_EQ(stream.synchronize().text(), "ten");
  EXPECT_TRUE(stream.synchronize().ok()) << "reported once";
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(WorkStream, EndsAfterWhatIsQueued) {
  std::atomic<int> ran{0};
  {
    WorkStream stream;
    for (int i = 0; i < 50; ++i) {
      stream.enqueue([&]() -> Status {
        ++ran;
        return {};
      });
    }
  }
  EXPECT_EQ(ran.load(), 50);
}

TEST(WorkStream, AnExceptionIsTheFirstErrorAndWhatFollowsRuns) {
  WorkStream stream;
  std::atomic<bool> ran{false};
  stream.enqueue([]() -> Status { throw std::runtime_error("spilled"); });
  stream.enqueue([&]() -> Status {
    ran = true;
    return {};
  });
  const Status status = stream.synchronize();
  EXPECT_EQ(status.code(), Code::InternalError);
  EXPECT_NE(status.text().find("spilled"), std::string::npos) << status.text();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace weft::engine
