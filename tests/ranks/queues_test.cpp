// SPDX-License-Identifier: Apache-2.0
// Streams and events as queues: order, waiting, errors, and ends that do not hang.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

void raise(void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }
void nap(void*) { sleepMs(2); }

TEST(Stream, RunsInOrderOnItsOwnThread) {
  struct Note {
    std::vector<std::size_t>* order;
    std::size_t number;
    std::thread::id thread;
  };
  Steps steps;
  std::vector<std::size_t> order;
  std::vector<Note> notes;
  for (std::size_t i = 0; i < 1000; ++i) notes.push_back({&order, i, {}});
  const auto leave = [](void* self) {
    Note& note = *static_cast<Note*>(self);
    note.order->push_back(note.number);
    note.thread = std::this_thread::get_id();
  };
  const Stream stream(steps);
  for (Note& note : notes) steps.ok(weftStreamCallback(stream, leave, &note), "callback");
  steps.ok(weftStreamSynchronize(stream), "synchronize");
  EXPECT_EQ(steps.failed(), "");
  ASSERT_EQ(order.size(), notes.size());
  for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], i);
  EXPECT_NE(notes[0].thread, std::this_thread::get_id());
}

TEST(Stream, QueryTellsWhetherWorkIsLeft) {
  Steps steps;
  Gate gate;
  const Stream stream(steps);
  EXPECT_EQ(weftStreamQuery(stream), weftSuccess);
  gate.holdUp(steps, stream);
  EXPECT_EQ(weftStreamQuery(stream), weftInProgress);
  gate.open();
  EXPECT_EQ(weftStreamSynchronize(stream), weftSuccess);
  EXPECT_EQ(weftStreamQuery(stream), weftSuccess);
  EXPECT_EQ(steps.failed(), "");
}

// Even when the event's handle is gone by then.
TEST(Event, HoldsAnotherStreamUpUntilItIsReached) {
  Steps steps;
  Gate gate;
  std::atomic<bool> after{false};
  const Stream a(steps), b(steps);
  {
    const Event event(steps);
    gate.holdUp(steps, a);
    steps.ok(weftEventRecord(event, a), "record");
    steps.ok(weftStreamWaitEvent(b, event), "wait");
    EXPECT_EQ(weftEventQuery(event), weftInProgress);
  }
  steps.ok(weftStreamCallback(b, &raise, &after), "callback");
  sleepMs(20);
  EXPECT_FALSE(after);
  gate.open();
  steps.ok(weftStreamSynchronize(b), "synchronize b");
  EXPECT_TRUE(after);
  EXPECT_EQ(steps.failed(), "");
}

// A wait is for the record that was the latest when the wait was queued.
TEST(Event, RecordedAgainDoesNotHoldUpEarlierWaits) {
  Steps steps;
  Gate gate;
  const Stream a(steps), b(steps);
  const Event event(steps);
  steps.ok(weftStreamWaitEvent(b, event), "wait for an event never recorded");
  steps.ok(weftEventRecord(event, a), "record");
  steps.ok(weftStreamWaitEvent(b, event), "wait");
  gate.holdUp(steps, a);
  steps.ok(weftEventRecord(event, a), "record again");
  steps.ok(weftStreamSynchronize(b), "synchronize b");
  EXPECT_EQ(weftEventQuery(event), weftInProgress);
  gate.open();
  steps.ok(weftEventSynchronize(event), "synchronize the event");
  EXPECT_EQ(weftEventQuery(event), weftSuccess);
  EXPECT_EQ(steps.failed(), "");
}

TEST(Event, RecordedAgainDoesNotLetEarlierWaitsGo) {
  Steps steps;
  Gate busy, waiting;
  std::atomic<bool> after{false};
  const Stream a(steps), b(steps);
  const Event event(steps);
  busy.holdUp(steps, a);
  waiting.holdUp(steps, b);  // until the event is recorded again, where nothing is to be done
  steps.ok(weftEventRecord(event, a), "record");
  steps.ok(weftStreamWaitEvent(b, event), "wait");
  steps.ok(weftStreamCallback(b, &raise, &after), "callback");
  steps.ok(weftEventRecord(event, nullptr), "record again");
  waiting.open();
  sleepMs(20);
  EXPECT_FALSE(after);
  busy.open();
  steps.ok(weftStreamSynchronize(b), "synchronize b");
  EXPECT_TRUE(after);
  EXPECT_EQ(steps.failed(), "");
}

// As of communicators, streams and shards, each in a table of its own.
TEST(Event, MoreThanAProcessMayHaveAreRefused) {
  std::vector<weftEvent_t> events;
  weftResult_t made = weftSuccess;
  for (weftEvent_t event = nullptr; made == weftSuccess && events.size() < 10000;) {
    made = weftEventCreate(&event);
    if (made == weftSuccess) events.push_back(event);
  }
  EXPECT_EQ(made, weftInvalidUsage);
  EXPECT_EQ(events.size(), 4096u);
  EXPECT_NE(std::string(weftGetLastError(nullptr))
                .find("this process has 4096 events, or would have more; fix"),
            std::string::npos)
      << weftGetLastError(nullptr);
  weftEventDestroy(events.back());
  EXPECT_EQ(weftEventCreate(&events.back()), weftSuccess) << weftGetLastError(nullptr);
  for (const weftEvent_t event : events) EXPECT_EQ(weftEventDestroy(event), weftSuccess);
}

TEST(Event, ElapsedTimeIsThatBetweenTheRecords) {
  Steps steps;
  Gate gate;
  const Stream stream(steps);
  const Event start(steps), end(steps);
  float ms = -1;
  const double before = nowMs();
  steps.ok(weftEventRecord(start, stream), "record start");
  gate.holdUp(steps, stream);
  steps.ok(weftEventRecord(end, stream), "record end");
  EXPECT_EQ(weftEventElapsedTime(&ms, start, end), weftInvalidUsage);
  steps.ok(weftEventSynchronize(start), "synchronize start");
  sleepMs(50);
  gate.open();
  steps.ok(weftEventSynchronize(end), "synchronize end");
  steps.ok(weftEventElapsedTime(&ms, start, end), "elapsed");
  EXPECT_GE(ms, 49.9f);
  EXPECT_LE(ms, nowMs() - before);
  EXPECT_EQ(steps.failed(), "");
}

class Queues : public ::testing::TestWithParam<World> {
 protected:
  void onEveryRank(const Body& body) { EXPECT_EQ(failures(GetParam(), body), ""); }
};

weftResult_t sum(const std::uint64_t* in, std::uint64_t* out, std::size_t count, weftComm_t comm,
                 weftStream_t stream) {
  return weftAllReduce(in, out, count, weftUint64, weftSum, comm, stream, nullptr);
}

// A chain of sums that alternates between two communicators on two streams, tied by events alone.
TEST_P(Queues, EventsOrderWorkOfDifferentCommunicators) {
  onEveryRank([](const Rank& r) {
    constexpr std::size_t kCount = 3000;
    Steps steps;
    const Twin twin(steps, r);
    const Stream a(steps), b(steps);
    const Event event(steps);
    std::vector<std::uint64_t> x(kCount, 1), y(kCount);
    std::uint64_t wanted = 1;
    for (int i = 0; i < 10; ++i) {
      steps.ok(weftStreamCallback(a, &nap, nullptr), "nap");
      steps.ok(sum(x.data(), y.data(), kCount, r.comm, a), "sum on a");
      steps.ok(weftEventRecord(event, a), "record on a");
      steps.ok(weftStreamWaitEvent(b, event), "b waits");
      steps.ok(sum(y.data(), x.data(), kCount, twin, b), "sum on b");
      steps.ok(weftEventRecord(event, b), "record on b");
      steps.ok(weftStreamWaitEvent(a, event), "a waits");
      wanted *= static_cast<std::uint64_t>(r.ranks * r.ranks);
    }
    steps.ok(weftStreamSynchronize(a), "synchronize a");
    steps.expect(x == std::vector<std::uint64_t>(kCount, wanted), "wrong sums");
    return steps.failed();
  });
}

// Even ranks queue A then B; odd ranks queue B, see it finished, and only then queue A.
TEST_P(Queues, OppositeOrdersOnTwoCommunicators) {
  onEveryRank([](const Rank& r) {
    constexpr std::size_t kCount = 20000;
    Steps steps;
    const Twin twin(steps, r);
    const Stream onA(steps), onB(steps);
    const std::vector<std::uint64_t> in(kCount, 1);
    const std::vector<std::uint64_t> wanted(kCount, static_cast<std::uint64_t>(r.ranks));
    for (int i = 0; i < 20 && steps.failed().empty(); ++i) {
      std::vector<std::uint64_t> a(kCount), b(kCount);
      if (r.rank % 2 == 0) steps.ok(sum(in.data(), a.data(), kCount, r.comm, onA), "A first");
      steps.ok(sum(in.data(), b.data(), kCount, twin, onB), "B");
      steps.ok(weftStreamSynchronize(onB), "synchronize B");
      if (r.rank % 2 != 0) steps.ok(sum(in.data(), a.data(), kCount, r.comm, onA), "A last");
      steps.ok(weftStreamSynchronize(onA), "synchronize A");
      steps.expect(a == wanted && b == wanted, "wrong sums");
    }
    return steps.failed();
  });
}

TEST_P(Queues, ErrorsSurfaceAtSynchronize) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    const Stream stream(steps);
    std::vector<std::uint64_t> in(20, 1), out(20);
    steps.gives(weftInvalidArgument, sum(nullptr, out.data(), 1, r.comm, stream), "no buffer");
    steps.ok(sum(in.data(), out.data(), r.rank == 0 ? 10 : 11, r.comm, stream), "queueing a call");
    steps.gives(weftMismatch, weftStreamSynchronize(stream), "synchronize");
    steps.ok(weftStreamSynchronize(stream), "synchronize again");
    (void)sum(in.data(), out.data(), 10, r.comm, stream);
    while (weftStreamQuery(stream) == weftInProgress) sleepMs(1);
    steps.gives(weftMismatch, weftStreamQuery(stream), "query");
    steps.gives(weftMismatch, weftStreamSynchronize(stream), "synchronize after the first error");
    return steps.failed();
  });
}

// A stream whose work waits for a rank that never comes ends with the work's deadline.
TEST_P(Queues, DestroyingAStreamIsBoundedByDeadlines) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    weftResult_t firstError = weftSuccess;
    const double from = nowMs();
    while (r.rank == 0 && firstError == weftSuccess && nowMs() - from < 10 * kPromptMs)
      weftCommGetAsyncError(r.comm, &firstError);
    if (r.rank == 0) return steps.failed();
    weftStream_t stream = nullptr;
    steps.ok(weftStreamCreate(&stream), "create a stream");
    weftOpts_t opts = WEFT_OPTS_INITIALIZER;
    opts.timeoutMs = 200;
    std::uint64_t one = 1, all = 0;
    const double start = nowMs();
    for (int i = 0; i < 50; ++i)
      steps.ok(weftAllReduce(&one, &all, 1, weftUint64, weftSum, r.comm, stream, &opts), "queue");
    steps.gives(weftTimeout, weftStreamDestroy(stream), "destroy");
    steps.expect(nowMs() - start < 200 + kPromptMs, "too late");
    steps.gives(weftInvalidArgument, weftStreamSynchronize(stream), "a destroyed stream");
    return steps.failed();
  });
}

// Queued work of the communicator cannot begin: the application holds its stream up.
TEST_P(Queues, DestroyingACommunicatorWithQueuedWorkIsBounded) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    Gate gate;
    const Stream stream(steps);
    std::uint64_t one = 1, all = 0;
    weftComm_t twin = nullptr;
    steps.ok(weftCommSplit(r.comm, 0, r.rank, &twin, nullptr), "split");
    gate.holdUp(steps, stream);
    for (int i = 0; i < 20; ++i) steps.ok(sum(&one, &all, 1, twin, stream), "queue");
    const double start = nowMs();
    steps.ok(weftCommDestroy(twin), "destroy");
    steps.expect(nowMs() - start < kPromptMs, "too late");
    gate.open();
    steps.gives(weftAborted, weftStreamSynchronize(stream), "synchronize");
    steps.expect(all == 0, "a result was delivered");
    steps.ok(sum(&one, &all, 1, r.comm, nullptr), "sum on the parent");
    return steps.failed();
  });
}

// A call after an abort does not wait for earlier ones that the application holds up.
TEST_P(Queues, AnAbortedCommunicatorAnswersAtOnce) {
  onEveryRank([](const Rank& r) {
    Steps steps;
    Gate gate;
    const Stream stream(steps);
    std::uint64_t one = 1, all = 0;
    gate.holdUp(steps, stream);
    steps.ok(sum(&one, &all, 1, r.comm, stream), "queue");
    steps.ok(weftCommAbort(r.comm), "abort");
    const double start = nowMs();
    steps.gives(weftAborted, weftBarrier(r.comm, nullptr, nullptr), "behind the held-up call");
    gate.open();
    steps.gives(weftAborted, weftStreamSynchronize(stream), "the held-up call");
    steps.gives(weftAborted, weftBarrier(r.comm, nullptr, nullptr), "afterwards");
    steps.expect(nowMs() - start < kPromptMs, "too late");
    return steps.failed();
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Queues,
                         ::testing::Values(World{Kind::Threads, 2}, World{Kind::Threads, 4},
                                           World{Kind::Processes, 3},
                                           World{Kind::Threads, 3, "faulty:3"}),
                         [](const auto& test) {
                           const World& w = test.param;
                           const bool faulty = w.transport != std::string("auto");
                           return nameOf(w.kind) + std::to_string(w.ranks) +
                                  (faulty ? "faulty" : "");
                         });

}  // namespace
}  // namespace weft::testing
