// SPDX-License-Identifier: Apache-2.0
// Rooted calls: a rank that only sends does not wait for the others, as far as they have room for
// what it sends; and it learns of what goes wrong behind it.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

constexpr int kShort = 2;        // floats that travel in an arrival slot
constexpr int kMedium = 1000;    // that travel beside it, in the ring's staging memory
constexpr int kLong = 5000;      // that do so only where ranks share cores
constexpr int kLongest = 70000;  // that never do
constexpr int kInRing = 128;     // short calls
constexpr int kStaged = 32;  // medium ones, at least: as many as short ones where ranks share cores
constexpr int kInLanes = 4;  // others; and long ones, at least: as many as medium ones
constexpr float kGuard = -7;

enum class Way { Broadcast, Scatter, Reduce, Gather };

// Who sends, and who gets something. Rank 0 is the root.
bool sends(Way way, int rank) {
  return (way == Way::Broadcast || way == Way::Scatter) == (rank == 0);
}

weftResult_t make(Way way, const Rank& r, std::vector<float>& in, std::vector<float>& out,
                  std::size_t count, const weftOpts_t* opts = nullptr) {
  switch (way) {
    case Way::Broadcast:
      return weftBroadcast(in.data(), out.data(), count, weftFloat, 0, r.comm, nullptr, opts);
    case Way::Scatter:
      return weftScatter(in.data(), out.data(), count, weftFloat, 0, r.comm, nullptr, opts);
    case Way::Reduce:
      return weftReduce(in.data(), out.data(), count, weftFloat, weftMax, 0, r.comm, nullptr, opts);
    default:
      return weftGather(in.data(), out.data(), count, weftFloat, 0, r.comm, nullptr, opts);
  }
}

struct Case {
  Kind kind;
  int ranks;
  Way way;
  int count;

  // At least, and how many more where ranks share cores.
  int depth() const { return count == kShort ? kInRing : count == kMedium ? kStaged : kInLanes; }
  int mayBeMore() const {
    if (ranks <= static_cast<int>(std::thread::hardware_concurrency())) return 0;
    return count == kShort ? 0 : count == kMedium ? kInRing - kStaged : kStaged - kInLanes;
  }
};

std::string nameOfCase(const ::testing::TestParamInfo<Case>& info) {
  constexpr const char* kWays[] = {"Broadcast", "Scatter", "Reduce", "Gather"};
  return nameOf(info.param.kind) + std::to_string(info.param.ranks) +
         kWays[static_cast<int>(info.param.way)] + std::to_string(info.param.count);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Kind kind : {Kind::Threads, Kind::Processes})
    for (const int ranks : {2, 4})
      for (const Way way : {Way::Broadcast, Way::Scatter, Way::Reduce, Way::Gather})
        for (const int count : {kShort, kMedium, kLong}) all.push_back({kind, ranks, way, count});
  return all;
}

class Rooted : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Worlds, Rooted, ::testing::ValuesIn(cases()), nameOfCase);

struct Gone {
  std::atomic<int> ahead{0};  // ranks that have sent all
  std::atomic<int> late{0};   // ranks that have failed
};

weftOpts_t stagedOpts(Way way) {
  weftOpts_t opts = WEFT_OPTS_INITIALIZER;
  opts.algorithm = way == Way::Reduce      ? "one-shot"
                   : way == Way::Broadcast ? "direct"
                                           : "direct:staged";
  return opts;
}

// Call number `i` has value i; whoever gets something gets no other, and nothing besides.
std::string checkOut(const std::vector<float>& out, std::size_t values, int i) {
  for (std::size_t k = 0; k < out.size(); ++k)
    if (out[k] != (k < values ? static_cast<float>(i) : kGuard))
      return "call " + std::to_string(i) + ": element " + std::to_string(k) + " is " +
             std::to_string(out[k]);
  return "";
}

TEST_P(Rooted, RunsAheadAsFarAsThereIsRoomAndWhatItSentArrives) {
  const Case& c = GetParam();
  Shared<Gone> gone;
  const int senders = sends(c.way, 0) ? 1 : c.ranks - 1;
  const auto count = static_cast<std::size_t>(c.count), room = count * 4 + 8;
  const weftOpts_t opts = stagedOpts(c.way);
  EXPECT_EQ(failures({c.kind, c.ranks},
                     [&](const Rank& r) -> std::string {
                       Steps steps;
                       std::vector<float> in(room), out(room);
                       const bool isSender = sends(c.way, r.rank);
                       while (!isSender && gone->ahead.load() < senders) sleepMs(0.1);
                       const bool isRoot = r.rank == 0;
                       const std::size_t got =
                           c.way == Way::Gather ? count * static_cast<std::size_t>(c.ranks) : count;
                       for (int i = 1; i <= c.depth(); ++i) {
                         in.assign(room, static_cast<float>(i));
                         out.assign(room, kGuard);
                         steps.ok(make(c.way, r, in, out, count, &opts), "call");
                         const bool gets = isRoot || sends(c.way, 0);
                         steps.expect(checkOut(out, gets ? got : 0, i).empty(),
                                      checkOut(out, gets ? got : 0, i));
                       }
                       if (isSender) gone->ahead.fetch_add(1);
                       steps.ok(weftCommFinalize(r.comm), "finalize");
                       return steps.failed();
                     }),
            "");
}

// One call more than there is room for waits, and says for whom.
TEST_P(Rooted, WaitsForThoseWhoHaveNoRoom) {
  const Case& c = GetParam();
  Shared<Gone> gone;
  const int senders = sends(c.way, 0) ? 1 : c.ranks - 1;
  const auto count = static_cast<std::size_t>(c.count), room = count * 4;
  weftOpts_t opts = stagedOpts(c.way);
  EXPECT_EQ(failures({c.kind, c.ranks},
                     [&](const Rank& r) -> std::string {
                       Steps steps;
                       std::vector<float> in(room), out(room);
                       if (!sends(c.way, r.rank)) {
                         while (gone->late.load() < senders) sleepMs(0.1);
                         return "";
                       }
                       for (int i = 0; i < c.depth(); ++i)
                         steps.ok(make(c.way, r, in, out, count, &opts), "call");
                       gone->ahead.fetch_add(1);
                       while (gone->ahead.load() < senders) sleepMs(0.1);
                       weftOpts_t soon = opts;
                       soon.timeoutMs = 50;
                       weftResult_t more = weftSuccess;
                       for (int i = 0; i <= c.mayBeMore() && more == weftSuccess; ++i)
                         more = make(c.way, r, in, out, count, &soon);
                       steps.gives(weftTimeout, more, "one more");
                       const std::string text = weftGetLastError(r.comm);
                       weftErrorInfo_t info = WEFT_ERROR_INFO_INITIALIZER;
                       weftGetLastErrorInfo(r.comm, &info);
                       steps.expect(sends(c.way, info.rank) == false && info.rank >= 0,
                                    "blames rank " + std::to_string(info.rank) + ": " + text);
                       gone->late.fetch_add(1);
                       return steps.failed();
                     }),
            "");
}

// The receiver judges; whoever has sent is told when it finishes.
TEST(RootedMismatch, IsToldToARootThatHasReturned) {
  const std::vector<std::string> texts = run({Kind::Threads, 3}, [](const Rank& r) -> std::string {
    std::vector<float> data(8);
    const std::size_t count = r.rank == 2 ? 3 : 2;
    const weftResult_t result =
        weftBroadcast(data.data(), data.data(), count, weftFloat, 0, r.comm, nullptr, nullptr);
    if (r.rank == 0 && result != weftSuccess && result != weftMismatch)
      return "root: " + outcome(result, r.comm);
    const weftResult_t end = weftCommFinalize(r.comm);
    return end == weftMismatch ? weftGetLastError(r.comm) : "finalize: " + outcome(end, r.comm);
  });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("#1"), std::string::npos) << text;
    EXPECT_NE(text.find("ranks 0-1 called broadcast(count=2, float, root=0)"), std::string::npos)
        << text;
    EXPECT_NE(text.find("rank 2 called broadcast(count=3, float, root=0)"), std::string::npos)
        << text;
  }
}

// Messages in arrival slots, beside them, longer ones, segments of such and in lanes take turns, and
// so do those who are late: of calls that all go one way and of such as do not.
TEST(RootedLengths, TakeTurns) {
  for (const Kind kind : {Kind::Threads, Kind::Processes}) {
    const auto text = failures({kind, 4}, [&](const Rank& r) -> std::string {
      Steps steps;
      std::vector<float> in(kLongest), out(4 * kLongest);
      for (int i = 1; i <= 900; ++i) {
        const auto way = static_cast<Way>((i / 100 % 2 == 0 ? i / 200 : i % 13) % 4);
        const int count = i % 31 == 0   ? kLongest
                          : i % 29 == 0 ? 5 * kLong
                          : i % 5 == 0  ? 1 + i * 101 % kLong
                          : i % 3 == 0  ? kShort
                                        : 1 + i * 37 % kMedium;
        const auto length = static_cast<std::size_t>(count);
        in.assign(4 * length, static_cast<float>(i));
        out.assign(4 * length, kGuard);
        if (i % 200 == 50 * r.rank) sleepMs(2);
        steps.ok(make(way, r, in, out, length), "call");
        const bool gets = r.rank == 0 || sends(way, 0);
        const std::size_t got = way == Way::Gather ? 4 * length : length;
        if (gets) steps.expect(checkOut(out, got, i).empty(), checkOut(out, got, i));
      }
      steps.ok(weftCommFinalize(r.comm), "finalize");
      return steps.failed();
    });
    EXPECT_EQ(text, "");
  }
}

// Calls like the last one take a shorter way. What is wrong with one of them is told as ever, and does the
// others no harm; buffers may be others, and in place; and other threads may come in between.
TEST(RootedRepeats, AreCheckedAsAllCalls) {
  for (const Kind kind : {Kind::Threads, Kind::Processes}) {
    const auto text = failures({kind, 2}, [&](const Rank& r) -> std::string {
      Steps steps;
      std::vector<float> in(2), out(2);
      const bool isRoot = r.rank == 0;
      const auto call = [&](const void* from, void* to, int root = 0) {
        return weftBroadcast(from, to, 2, weftFloat, root, r.comm, nullptr, nullptr);
      };
      for (int i = 1; i <= 40; ++i) {
        in.assign(2, static_cast<float>(i));
        out.assign(2, kGuard);
        float* const to = isRoot && i % 3 == 0 ? in.data() : out.data();
        if (i % 5 == 0) {
          steps.gives(weftInvalidArgument,
                      call(isRoot ? nullptr : in.data(), isRoot ? to : nullptr), "no buffer");
          steps.gives(weftInvalidArgument, call(in.data(), to, 2), "no such root");
        }
        if (i % 7 == 0) {
          std::thread([&] { steps.ok(call(in.data(), to), "by another thread"); }).join();
        } else {
          steps.ok(call(in.data(), to), "call");
        }
        steps.expect(to[0] == static_cast<float>(i) && to[1] == static_cast<float>(i),
                     "call " + std::to_string(i) + " gave " + std::to_string(to[0]));
      }
      steps.ok(weftCommFinalize(r.comm), "finalize");
      return steps.failed();
    });
    EXPECT_EQ(text, "");
  }
}

// The same for overlaps, groups, streams, options and calls of other kinds in between.
TEST(RootedRepeats, GoOnAfterWhatIsNone) {
  const auto text = failures({Kind::Processes, 3}, [&](const Rank& r) -> std::string {
    Steps steps;
    std::vector<float> in(8), out(24);
    weftStream_t stream = nullptr;
    steps.ok(weftStreamCreate(&stream), "stream");
    weftOpts_t opts = WEFT_OPTS_INITIALIZER;
    opts.label = "labelled";
    for (int i = 1; i <= 60; ++i) {
      in.assign(8, static_cast<float>(i));
      out.assign(24, kGuard);
      const auto gather = [&](weftStream_t on, const weftOpts_t* with) {
        return weftGather(in.data(), out.data(), 2, weftFloat, 0, r.comm, on, with);
      };
      const int odd = i % 6;
      if (odd == 1) steps.ok(weftGroupStart(), "group");
      steps.ok(gather(odd == 2 ? stream : nullptr, odd == 3 ? &opts : nullptr), "gather");
      if (odd == 1) steps.ok(weftGroupEnd(), "end of group");
      if (odd == 2) steps.ok(weftStreamSynchronize(stream), "synchronize");
      if (r.rank == 0) steps.expect(checkOut(out, 6, i).empty(), checkOut(out, 6, i));
      if (odd == 4)
        steps.ok(
            weftAllReduce(in.data(), out.data(), 8, weftFloat, weftMax, r.comm, nullptr, nullptr),
            "all-reduce");
      if (odd == 5 && r.rank == 0)
        steps.gives(
            weftInvalidArgument,
            weftGather(out.data() + 1, out.data(), 2, weftFloat, 0, r.comm, nullptr, nullptr),
            "overlap");
    }
    steps.ok(weftStreamDestroy(stream), "destroy");
    steps.ok(weftCommFinalize(r.comm), "finalize");
    return steps.failed();
  });
  EXPECT_EQ(text, "");
}

// A rank that calls another one after many like each other.
TEST(RootedMismatch, AfterManyAlike) {
  const std::vector<std::string> texts =
      run({Kind::Processes, 2}, [&](const Rank& r) -> std::string {
        std::vector<float> data(4);
        weftResult_t result = weftSuccess;
        for (int i = 1; i <= 100 && result == weftSuccess; ++i)
          result = weftBroadcast(data.data(), data.data(), i == 50 && r.rank == 1 ? 3 : 2,
                                 weftFloat, 0, r.comm, nullptr, nullptr);
        if (result == weftSuccess) result = weftCommFinalize(r.comm);
        return result == weftMismatch ? weftGetLastError(r.comm) : outcome(result, r.comm);
      });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("mismatched collective #50 "), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1 called broadcast(count=3, float, root=0)"), std::string::npos)
        << text;
  }
}

// Ranks that all think that they are the root, and wait for nobody.
TEST(RootedMismatch, OfTwoRootsIsToldSoonAndWhenTheyFinish) {
  for (const bool finishes : {false, true}) {
    const std::vector<std::string> texts =
        run({Kind::Processes, 2}, [&](const Rank& r) -> std::string {
          float value = 1;
          weftResult_t result = weftSuccess;
          const int calls = finishes ? 3 : 4 * kInRing;
          for (int i = 0; i < calls && result == weftSuccess; ++i)
            result = weftBroadcast(&value, &value, 1, weftFloat, i == 0 ? r.rank : 0, r.comm,
                                   nullptr, nullptr);
          if (result == weftSuccess && finishes) result = weftCommFinalize(r.comm);
          return result == weftMismatch ? weftGetLastError(r.comm) : outcome(result, r.comm);
        });
    for (const std::string& text : texts) {
      EXPECT_NE(text.find("mismatched collective #1 "), std::string::npos) << text;
      EXPECT_NE(text.find("rank 0 called broadcast(count=1, float, root=0)"), std::string::npos);
      EXPECT_NE(text.find("rank 1 called broadcast(count=1, float, root=1)"), std::string::npos);
    }
  }
}

// Nobody ever waits, and nobody ever hears.
TEST(RootedMismatch, OfRanksThatOnlySend) {
  const std::vector<std::string> texts = run({Kind::Threads, 2}, [&](const Rank& r) -> std::string {
    float value = 1;
    weftResult_t result = weftSuccess;
    for (int i = 0; i < 1000 && result == weftSuccess; ++i)
      result = weftBroadcast(&value, &value, 1, weftFloat, r.rank, r.comm, nullptr, nullptr);
    return result == weftMismatch ? weftGetLastError(r.comm) : outcome(result, r.comm);
  });
  for (const std::string& text : texts)
    EXPECT_NE(text.find("mismatched collective #1 "), std::string::npos) << text;
}

struct Begun {
  std::atomic<int> calls{0};
};

// Of a receiver that is killed, the root hears when there is no more room, and at the end.
TEST(RootedDeath, OfAReceiverIsToldToARootThatIsAhead) {
  for (const bool finishes : {false, true}) {
    Shared<Begun> begun;
    const World world{Kind::Processes, 3};
    Processes processes(world, [&](const Rank& r) -> std::string {
      float value = 1;
      weftResult_t result = weftSuccess;
      for (int i = 0; result == weftSuccess && (r.rank != 2 || i == 0); ++i) {
        if (finishes && i == kInRing / 2) break;
        result = weftBroadcast(&value, &value, 1, weftFloat, 0, r.comm, nullptr, nullptr);
        if (r.rank == 2) begun->calls.fetch_add(1);
      }
      while (r.rank == 2) sleepMs(1);
      if (result == weftSuccess) result = weftCommFinalize(r.comm);
      return outcome(result, r.comm);
    });
    while (begun->calls.load() == 0) sleepMs(0.2);
    const std::string pid = "pid " + std::to_string(processes.pid(2)) + ")";
    processes.signal(2, SIGKILL);
    const std::vector<std::string> texts = processes.join();
    for (int rank = 0; rank < 2; ++rank) {
      const std::string& text = texts[static_cast<std::size_t>(rank)];
      EXPECT_NE(text.find("rank 2 (host "), std::string::npos) << text;
      EXPECT_NE(text.find(pid), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace weft::testing
