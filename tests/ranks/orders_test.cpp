// SPDX-License-Identifier: Apache-2.0
// What may be queued in any order, in every order: records of an event and waits for it on two
// streams, each program beside a model of it; and calls in every way behind one that cannot start,
// each of which ends by its deadline.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

// ---- Events -------------------------------------------------------------------------------------

enum class Op { RecordOnA, RecordOnB, RecordOnNone, WaitOnA, WaitOnB };
constexpr std::array kOps{Op::RecordOnA, Op::RecordOnB, Op::RecordOnNone, Op::WaitOnA, Op::WaitOnB};
constexpr std::size_t kLength = 3;
using Program = std::array<Op, kLength>;

std::vector<Program> allPrograms() {
  std::vector<Program> all;
  for (const Op first : kOps)
    for (const Op second : kOps)
      for (const Op third : kOps) all.push_back({first, second, third});
  return all;
}

std::string describe(const Program& program) {
  constexpr const char* kNames[] = {"record on a", "record on b", "record", "a waits", "b waits"};
  std::string text;
  for (const Op op : program) text += std::string(kNames[static_cast<std::size_t>(op)]) + "; ";
  return text;
}

// Who waits for stream a, which is held up: the end of b, and the event's latest record?
struct Held {
  bool b = false, record = false;
};
Held heldAfter(const Program& program) {
  Held held;
  for (const Op op : program) {
    if (op == Op::RecordOnA) held.record = true;
    if (op == Op::RecordOnB) held.record = held.b;
    if (op == Op::RecordOnNone) held.record = false;
    if (op == Op::WaitOnB) held.b = held.b || held.record;
  }
  return held;
}

weftResult_t queue(Op op, weftEvent_t event, weftStream_t a, weftStream_t b) {
  switch (op) {
    case Op::RecordOnA:
      return weftEventRecord(event, a);
    case Op::RecordOnB:
      return weftEventRecord(event, b);
    case Op::RecordOnNone:
      return weftEventRecord(event, nullptr);
    case Op::WaitOnA:
      return weftStreamWaitEvent(a, event);
    default:
      return weftStreamWaitEvent(b, event);
  }
}

// What was queued while both streams were held up, when b no longer is.
std::string runProgram(const Program& program) {
  Steps steps;
  Gate gateOfA, gateOfB;
  const Stream a(steps), b(steps);
  const Event event(steps);
  const Held held = heldAfter(program);
  gateOfA.holdUp(steps, a);
  gateOfB.holdUp(steps, b);
  for (const Op op : program) steps.ok(queue(op, event, a, b), "queue");
  gateOfB.open();
  if (held.b) sleepMs(0.5);  // long enough to be wrong
  for (const double start = nowMs(); !held.b && weftStreamQuery(b) == weftInProgress;)
    if (!steps.expect(nowMs() - start < 20000, "b waits for a")) break;
  steps.gives(held.b ? weftInProgress : weftSuccess, weftStreamQuery(b), "query b");
  steps.gives(held.record ? weftInProgress : weftSuccess, weftEventQuery(event), "query event");
  gateOfA.open();
  steps.ok(weftStreamSynchronize(a), "synchronize a");
  steps.ok(weftStreamSynchronize(b), "synchronize b");
  steps.ok(weftEventQuery(event), "query event at the end");
  return steps.failed();
}

TEST(EveryOrder, OfRecordsAndWaits) {
  for (const Program& program : allPrograms())
    EXPECT_EQ(runProgram(program), "") << describe(program);
}

// ---- Deadlines ----------------------------------------------------------------------------------

constexpr int kTimeoutMs = 100;

enum class Way { Alone, OnB, InGroup, OnBInGroup, OnBothInGroup };
constexpr std::array kWays{Way::Alone, Way::OnB, Way::InGroup, Way::OnBInGroup, Way::OnBothInGroup};

// A rank by itself, one of whose streams is held up.
struct Waiting {
  Steps steps;
  weftComm_t comm = nullptr;
  Gate gate{3 * kPromptMs};
  Stream a{steps}, b{steps};
  std::vector<float> data = std::vector<float>(10, 1);

  Waiting() {
    steps.ok(weftCommInitAll(&comm, 1, nullptr), "create");
    gate.holdUp(steps, a);
  }
  ~Waiting() { weftCommDestroy(comm); }

  weftResult_t call(weftStream_t stream, int timeoutMs) {
    weftOpts_t opts = WEFT_OPTS_INITIALIZER;
    opts.timeoutMs = timeoutMs;
    return weftAllReduce(data.data(), data.data(), data.size(), weftFloat, weftSum, comm, stream,
                         &opts);
  }
  // What the call ends with, wherever it runs.
  weftResult_t callIn(Way way) {
    const bool grouped = way >= Way::InGroup, onB = way != Way::Alone && way != Way::InGroup;
    if (grouped) steps.ok(weftGroupStart(), "start a group");
    if (way == Way::OnBothInGroup) steps.ok(call(nullptr, kTimeoutMs), "call");
    weftResult_t result = call(onB ? weftStream_t{b} : nullptr, kTimeoutMs);
    if (grouped) {
      const weftResult_t ended = weftGroupEnd();
      if (result == weftSuccess) result = ended;
    }
    const weftResult_t streamed = weftStreamSynchronize(b);
    return result == weftSuccess ? streamed : result;
  }
};

// The first call waits for its stream, the second for the first.
std::string runBehind(Way way) {
  Waiting w;
  w.steps.ok(w.call(w.a, WEFT_UNDEF_INT), "queue");
  const double start = nowMs();
  w.steps.gives(weftTimeout, w.callIn(way), "behind a call that waits");
  const double took = nowMs() - start;
  w.steps.expect(took < kPromptMs, "took " + std::to_string(took) + " ms");
  w.gate.open();
  w.steps.gives(weftTimeout, weftStreamSynchronize(w.a), "the call that waited");
  return w.steps.failed();
}

TEST(EveryOrder, OfCallsBehindAStreamThatIsHeldUp) {
  std::vector<std::thread> threads;
  std::array<std::string, kWays.size()> failed;
  for (std::size_t i = 0; i < kWays.size(); ++i)
    threads.emplace_back([&failed, i] { failed[i] = runBehind(kWays[i]); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < kWays.size(); ++i) EXPECT_EQ(failed[i], "") << "way " << i;
}

}  // namespace
}  // namespace weft::testing
