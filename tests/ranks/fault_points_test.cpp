// SPDX-License-Identifier: Apache-2.0
// Every fault at every step of a call: a rank dies, stops, aborts or loses a link at its k-th
// put, for all k, before the first and after the last, is destroyed at its first, or has called
// something else, or waits behind a stream of its own. Whoever gets a result gets the right one, all others the name of the culprit,
// and all of them in the end the name. Without a transport that counts puts, a rank dies at its
// k-th instruction; RANKS_TEST_STEPS says at how many of them in each call. Of three ranks every third point is tried, of
// cut links a sixth of these, of a sanitizer's run fewer (ThreadSanitizer's none where processes die or stop), and with
// TEST_SWEEPS_ALL (./dev soak kills) all.
#include <gtest/gtest.h>
#include <semaphore.h>
#include <signal.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "checked_call.h"
#include "steps.h"

namespace weft::testing {
namespace {

constexpr int kMostPuts = 64;
constexpr int kTimeoutMs = 30000 * kSlowdown;
// Of calls that wait for a stopped rank: long enough for all others to come.
constexpr int kStoppedMs = kSanitized ? 3000 : 2000;
constexpr std::size_t kStoppedAtOnce = kSanitized ? 12 : 32;

bool sweepsAll() { return std::getenv("TEST_SWEEPS_ALL") != nullptr; }

// Of how many points one is tried.
std::size_t strideOf(int ranks) {
  if (sweepsAll()) return 1;
  return kSanitized ? 13 : ranks > 2 ? 3 : 1;
}

// Of how many scenes a link is cut in one: all ranks wait for a while to tell each cut from a death.
std::size_t strideOfCuts(int ranks) {
  return sweepsAll() || kSanitized ? strideOf(ranks) : 6 * strideOf(ranks);
}

// ---- Calls ------------------------------------------------------------------------------------

// With segments of 1 KiB: inlined, one segment, several of them in all lanes and more. And a
// message of two pieces, or one that its receiver reads where it lies.
constexpr std::size_t kInline = 4, kOne = 50, kSeveral = 550, kPieces = 20000;

struct Scene {
  const char* name;
  Form form;
  std::size_t count;
  const char* algorithm;
  Memory memory = Memory::Own;
};

constexpr Scene kScenes[] = {
    {"all_reduce one-shot", Form::AllReduce, kInline, "one-shot"},
    {"all_reduce mesh", Form::AllReduce, kOne, "mesh:staged"},
    {"all_reduce mesh", Form::AllReduce, kSeveral, "mesh:staged"},
    {"all_reduce ring, direct", Form::AllReduce, kOne, "ring:direct"},
    {"all_gather mesh", Form::AllGather, kInline, "mesh:staged"},
    {"all_gather mesh", Form::AllGather, kSeveral, "mesh:staged"},
    {"all_gather mesh, direct", Form::AllGather, kSeveral, "mesh:direct"},
    {"all_gather mesh, published", Form::AllGather, kSeveral, "mesh:published"},
    {"reduce_scatter mesh", Form::ReduceScatter, kInline, "mesh:staged"},
    {"reduce_scatter circulant", Form::ReduceScatter, kSeveral, "circulant:staged"},
    {"broadcast direct", Form::Broadcast, kInline, "direct:staged"},
    {"broadcast direct, published", Form::Broadcast, kSeveral, "direct:published"},
    {"broadcast binomial", Form::Broadcast, kSeveral, "binomial:staged"},
    {"reduce one-shot", Form::Reduce, kOne, "one-shot:staged"},
    {"gather direct", Form::Gather, kOne, "direct:direct"},
    {"scatter direct", Form::Scatter, kSeveral, "direct:staged"},
    {"alltoall", Form::AlltoAll, kInline, "direct:staged"},
    {"alltoall", Form::AlltoAll, kSeveral, "direct:staged"},
    {"alltoall, direct", Form::AlltoAll, kOne, "direct:direct"},
    {"barrier", Form::Barrier, 0, "dissemination"},
    {"shift", Form::Shift, kInline, ""},
    {"shift", Form::Shift, kPieces, ""},
    {"all_reduce shared", Form::AllReduce, kOne, "shared", Memory::Shared},
    {"all_gather shared", Form::AllGather, kSeveral, "shared", Memory::Shared},
    {"reduce shared", Form::Reduce, kOne, "shared", Memory::Shared},
    {"all_gather shared-pull", Form::AllGather, kSeveral, "shared-pull", Memory::Shared},
    {"reduce_scatter shared by some", Form::ReduceScatter, kOne, "shared", Memory::Mixed},
};
constexpr const Scene& kBarrier = kScenes[19];

Case caseOf(const Scene& scene, int ranks) {
  return {.form = scene.form,
          .type = weftFloat,
          .count = scene.count,
          .root = scene.form == Form::Shift ? 1 : 0,
          .algorithm = scene.algorithm,
          .ranks = ranks,
          .seed = 3,
          .memory = scene.memory};
}

// Not every container lets processes write into each other's memory.
bool hasDirectPuts() {
  static const bool has = failures({Kind::Processes, 2}, [](const Rank& r) {
                            weftOpts_t opts = WEFT_OPTS_INITIALIZER;
                            opts.algorithm = "ring:direct";
                            char line[500];
                            return outcome(weftCommExplain(r.comm, "all_reduce", 1, weftFloat,
                                                           weftSum, &opts, line, sizeof(line)),
                                           r.comm);
                          }).empty();
  return has;
}

std::vector<const Scene*> scenesFor(Kind kind) {
  std::vector<const Scene*> scenes;
  for (const Scene& scene : kScenes) {
    const bool direct = std::string(scene.algorithm).find(":direct") != std::string::npos;
    if (!direct || kind == Kind::Threads || hasDirectPuts()) scenes.push_back(&scene);
  }
  return scenes;
}

// ---- Points -----------------------------------------------------------------------------------

// Where rank `victim` suffers: at its put number `put` of `puts`; 0: before the call, puts + 1:
// after it.
struct Point {
  const Scene* scene;
  int ranks = 2;
  int victim = 0;
  int put = 0, puts = 0;
  // If not 0: it dies at this instruction of the call's second run instead, over any transport.
  std::uint64_t step = 0;

  bool isBefore() const { return put == 0; }
  bool isAfter() const { return put > puts; }
  // A transport that raises `signal` there.
  std::string transport(int signal) const {
    if (step != 0) return "auto";
    const int number = isBefore() || isAfter() ? kMostPuts + 1 : put;
    return "faulty:raise=" + std::to_string(number) + ":" + std::to_string(victim) + "-" +
           std::to_string(signal);
  }
};

std::string describe(const Point& p) {
  return std::string(p.scene->name) + " of " + std::to_string(p.scene->count) + ", " +
         std::to_string(p.ranks) + " ranks, rank " + std::to_string(p.victim) + " at put " +
         std::to_string(p.put) + " of " + std::to_string(p.puts) +
         (p.step != 0 ? ", at instruction " + std::to_string(p.step) : "") + ":\n";
}

std::atomic<int>* signals = nullptr;  // in memory that processes share
void countSignal(int) { signals->fetch_add(1); }

// How many puts the rank makes in the call: a signal at each of them, counted.
int putsOf(Kind kind, const Scene& scene, int ranks, int rank) {
  std::string transport = "faulty:seed=1";
  for (int k = 1; k <= kMostPuts; ++k)
    transport +=
        ",raise=" + std::to_string(k) + ":" + std::to_string(rank) + "-" + std::to_string(SIGUSR2);
  Shared<std::atomic<int>> counted;
  signals = &*counted;
  ::signal(SIGUSR2, countSignal);
  const World world{kind, ranks, transport.c_str(), kTimeoutMs};
  const std::string failed = failures(world, [&](const Rank& r) {
    const Case c = caseOf(scene, ranks);
    CheckedCall call(c, r);
    const weftResult_t result = call.make();
    return result == weftSuccess ? call.check() : outcome(result, r.comm);
  });
  EXPECT_EQ(failed, "") << scene.name;
  EXPECT_LT(counted->load(), kMostPuts) << scene.name;
  return counted->load();
}

// Of victims of a scene one in `every`, each in turn.
bool isTurnOf(const Scene& scene, int victim, std::size_t every) {
  const auto number = static_cast<std::size_t>(&scene - kScenes);
  return (2 * number + static_cast<std::size_t>(victim)) % every == 0;
}

// All points of all scenes, or some of them; a sanitizer's run counts the puts of every third scene and victim.
std::vector<Point> pointsOf(Kind kind, int ranks) {
  const std::size_t every = strideOf(ranks) == 13 ? 3 : 1, stride = strideOf(ranks) / every;
  std::vector<Point> all, some;
  for (const Scene* scene : scenesFor(kind)) {
    for (int victim = 0; victim < ranks; ++victim) {
      if (!isTurnOf(*scene, victim, every)) continue;
      const int puts = putsOf(kind, *scene, ranks, victim);
      for (int put = 0; put <= puts + 1; ++put) all.push_back({scene, ranks, victim, put, puts});
    }
  }
  for (std::size_t i = 0; i < all.size(); i += stride) some.push_back(all[i]);
  return some;
}

void report(std::size_t points) {
  ::testing::Test::RecordProperty("points", std::to_string(points));
  std::printf("  %zu fault points\n", points);
}

// ---- What a rank gets -------------------------------------------------------------------------

// "" if the error that the call ended with is the one wanted, of that rank.
std::string blames(const Rank& r, weftResult_t result, weftResult_t wanted, int culprit) {
  weftErrorInfo_t info = WEFT_ERROR_INFO_INITIALIZER;
  const std::string text = result == weftSuccess ? "success" : outcome(result, r.comm);
  weftGetLastErrorInfo(r.comm, &info);
  if (result == wanted && info.result == wanted && info.rank == culprit) return "";
  return "blamed rank " + std::to_string(info.rank) + ": " + text;
}

// Of a rooted call, a rank that gets nothing of the victim's (the victim: of anybody's) may be through
// before the fault is met; the next call tells it.
bool mayBeThrough(const Scene& scene, int rank, int victim) {
  if (!caseOf(scene, 2).isRooted()) return false;
  const int from = rank != victim ? victim : rank == 0 ? 1 : 0;
  const bool down = scene.form == Form::Broadcast || scene.form == Form::Scatter;
  return (down ? rank : from) == 0 || (down ? from : rank) != 0;
}

// The call that failed must have let go of its buffers, and the next one must say the same.
std::string afterFailure(const Rank& r, CheckedCall& call, weftResult_t failed) {
  call.takeBack();
  if (weftBarrier(r.comm, nullptr, nullptr) != failed) return "the error did not stay";
  return call.isUntouched() ? "" : "a buffer was written after the failure";
}

// On a stream or without one.
weftResult_t finish(CheckedCall& call, bool onStream, int timeoutMs) {
  if (!onStream) return call.make(nullptr, timeoutMs);
  Steps steps;
  const Stream stream(steps);
  const weftResult_t made = call.make(stream, timeoutMs);
  const weftResult_t ended = weftStreamSynchronize(stream);
  return made != weftSuccess ? made : ended;
}

// The call, every other one on a stream, then a barrier, which meets the fault at the latest.
// `suffer` is what the victim does to itself before or after the call.
std::string callUntilTold(const Rank& r, const Point& p, weftResult_t wanted, int timeoutMs,
                          const std::function<void()>& suffer) {
  const Case c = caseOf(*p.scene, p.ranks);
  CheckedCall call(c, r);
  const bool isVictim = r.rank == p.victim;
  if (isVictim && p.isBefore()) suffer();
  const bool onStream = p.put % 2 != 0 && wanted != weftAborted;  // whose thread takes no signals
  const weftResult_t result = finish(call, onStream, timeoutMs);
  if (isVictim && p.isAfter()) suffer();
  if (result != weftSuccess) {
    std::string wrong = blames(r, result, wanted, p.victim);
    // Nobody else is there who has come further and tells it; and an abort is told at once.
    if (p.isAfter() && p.ranks == 2 && wanted != weftAborted) wrong = "it had all it needs";
    return wrong.empty() ? afterFailure(r, call, wanted) : wrong;
  }
  if (p.isBefore() && p.scene->form != Form::Shift && !mayBeThrough(*p.scene, r.rank, p.victim))
    return "success without the victim";
  if (std::string wrong = call.check(); !wrong.empty()) return wrong;
  weftOpts_t opts = WEFT_OPTS_INITIALIZER;
  opts.timeoutMs = timeoutMs;
  return blames(r, weftBarrier(r.comm, nullptr, &opts), wanted, p.victim);
}

// ---- Instructions -----------------------------------------------------------------------------

#if defined(__x86_64__)
constexpr unsigned long long kTrapFlag = 0x100;  // of the processor: a trap after each instruction
void trapSteps() { __writeeflags(__readeflags() | kTrapFlag); }
void trapNoMore() { __writeeflags(__readeflags() & ~kTrapFlag); }
#else
void trapSteps() {}
void trapNoMore() {}
#endif

constexpr std::uint64_t kNoStep = ~std::uint64_t{0};
volatile std::uint64_t stepsTaken = 0, lastStep = 0;

void countStep(int) {
  stepsTaken = stepsTaken + 1;
  if (stepsTaken == lastStep) ::raise(SIGKILL);
}

// The call for the second time, so that it is all communication, until the victim's step. If there
// are fewer the victim stores how many, and dies then.
std::string callInSteps(const Rank& r, const Point& p, std::atomic<std::uint64_t>& taken) {
  const Case c = caseOf(*p.scene, p.ranks);
  CheckedCall first(c, r), second(c, r);
  if (const weftResult_t result = first.make(); result != weftSuccess)
    return blames(r, result, weftRemoteError, p.victim);  // told by one that was faster
  if (r.rank != p.victim) return callUntilTold(r, p, weftRemoteError, kTimeoutMs, [] {});
  lastStep = p.step;
  ::signal(SIGTRAP, countStep);
  trapSteps();
  const weftResult_t result = second.make();
  trapNoMore();
  taken = stepsTaken;
  if (result == weftSuccess) ::raise(SIGKILL);
  return outcome(result, r.comm);
}

// ---- A process dies, or stops -----------------------------------------------------------------

// False: some have not come in a minute.
bool awaitAll(const std::atomic<int>& come, int wanted) {
  for (const double start = nowMs(); come.load() < wanted; sleepMs(0.2))
    if (nowMs() - start > 60000) return false;
  return true;
}

// A world at one of the points, whose victim gets `signal`.
class Harm {
 public:
  Harm(const Point& point, int signal)
      : point_(point),
        signal_(signal),
        transport_(point.transport(signal)),
        processes_({Kind::Processes, point.ranks, transport_.c_str(), kTimeoutMs},
                   [this](const Rank& r) { return body(r); }) {}

  // "" or what was not as it should be.
  std::string end() {
    if (signal_ == SIGSTOP) {
      awaitAll(*told_, point_.ranks - 1);
      processes_.signal(point_.victim, SIGCONT);
    }
    std::vector<std::string> texts = processes_.join();
    std::string& victim = texts[static_cast<std::size_t>(point_.victim)];
    if (signal_ == SIGKILL) victim = victim == "killed by signal 9" ? "" : "lives: " + victim;
    const std::string failed = failuresIn(texts);
    return failed.empty() ? "" : describe(point_) + failed;
  }

  std::uint64_t instructions() const { return taken_->load(); }

 private:
  std::string body(const Rank& r) {
    const bool stops = signal_ == SIGSTOP;
    joined_->fetch_add(1);  // who dies earlier is missed while the world is made
    if (!awaitAll(*joined_, r.ranks)) return "the others did not come";
    if (point_.step != 0) return callInSteps(r, point_, *taken_);
    std::string wrong =
        callUntilTold(r, point_, stops ? weftTimeout : weftRemoteError,
                      stops ? kStoppedMs : kTimeoutMs, [this] { ::raise(signal_); });
    told_->fetch_add(1);
    return wrong;
  }

  const Point point_;
  const int signal_;
  const std::string transport_;
  Shared<std::atomic<int>> joined_, told_;
  Shared<std::atomic<std::uint64_t>> taken_;
  Processes processes_;
};

// Several worlds at once, as they wait more than they work. What instructions() says of each.
std::vector<std::uint64_t> harmAll(const std::vector<Point>& points, int signal,
                                   std::size_t atOnce) {
  std::vector<std::uint64_t> instructions;
  std::string failed;
  for (std::size_t from = 0; from < points.size() && failed.empty(); from += atOnce) {
    std::vector<std::unique_ptr<Harm>> worlds;
    for (std::size_t i = from; i < std::min(from + atOnce, points.size()); ++i)
      worlds.push_back(std::make_unique<Harm>(points[i], signal));
    for (const std::unique_ptr<Harm>& world : worlds) {
      failed += world->end();
      instructions.push_back(world->instructions());
    }
  }
  EXPECT_EQ(failed, "");
  report(points.size());
  return instructions;
}

class FaultPoints : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    ::setenv("WEFT_SEGMENT_KB", "1", 1);
    ::setenv("WEFT_DEBUG", "ERROR", 1);  // no warnings of those that stop
  }
  void TearDown() override {
    ::unsetenv("WEFT_SEGMENT_KB");
    ::unsetenv("WEFT_DEBUG");
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, FaultPoints, ::testing::Values(2, 3));

TEST_P(FaultPoints, ARankDies) { harmAll(pointsOf(Kind::Processes, GetParam()), SIGKILL, 4); }

// Of each scene one victim: every point takes as long as the deadline.
TEST_P(FaultPoints, ARankStops) {
  std::vector<Point> points = pointsOf(Kind::Processes, GetParam());
  std::erase_if(points, [](const Point& p) {
    return p.victim != static_cast<int>(p.scene - kScenes) % p.ranks;
  });
  std::size_t number = 0;
  std::erase_if(points, [&](const Point&) { return kSanitized && number++ % 3 != 0; });
  harmAll(points, SIGSTOP, kStoppedAtOnce);
}

// More of them at the beginning, where the call is told to the others. Steps of three ranks only
// when they are asked for: a trap takes long in a virtual machine.
TEST_P(FaultPoints, ARankDiesAtAnInstruction) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "instructions are counted by x86's trap flag";
#endif
  const char* const wanted = std::getenv("RANKS_TEST_STEPS");
  if (kSanitized || (GetParam() > 2 && wanted == nullptr)) GTEST_SKIP() << "takes long";
  const std::uint64_t steps = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 3;
  std::vector<Point> whole, points;
  for (const Scene* scene : scenesFor(Kind::Processes))
    whole.push_back({scene, GetParam(), 0, 1, 1, kNoStep});
  const std::vector<std::uint64_t> all = harmAll(whole, SIGKILL, 4);
  ASSERT_EQ(all.size(), whole.size());
  for (std::size_t w = 0; w < whole.size(); ++w)
    for (int victim = 0; victim < GetParam(); ++victim)
      for (std::uint64_t i = 0; i < steps; ++i)
        points.push_back(
            {whole[w].scene, GetParam(), victim, 1, 1, 1 + all[w] * i * i / (steps * steps)});
  harmAll(points, SIGKILL, 4);
}

// ---- A communicator is aborted, or destroyed ---------------------------------------------------

// The victim's signal handler asks another thread to end its communicator and waits for it, so that
// the call goes on when that is done.
struct Ending {
  sem_t asked, done;
};
thread_local Ending* ending = nullptr;  // of the victim's thread

void askForEnd(int) {
  ::sem_post(&ending->asked);
  ::sem_wait(&ending->done);
}

// `body` on the victim's thread, and on another one, when it is asked for, `end`.
std::string endWithin(const Rank& r, weftResult_t (*end)(weftComm_t),
                      const std::function<std::string()>& body) {
  Ending mine;
  ending = &mine;
  ::sem_init(&mine.asked, 0, 0);
  ::sem_init(&mine.done, 0, 0);
  std::atomic<bool> over{false};
  std::thread other([&] {
    ::sem_wait(&mine.asked);
    if (over) return;
    end(r.comm);
    ::sem_post(&mine.done);
  });
  std::string wrong = body();
  over = true;  // should nobody have asked
  ::sem_post(&mine.asked);
  other.join();
  return wrong;
}

std::string callAndAbort(const Rank& r, const Point& p) {
  if (r.rank != p.victim) return callUntilTold(r, p, weftAborted, kTimeoutMs, [] {});
  return endWithin(r, weftCommAbort, [&] {
    return callUntilTold(r, p, weftAborted, kTimeoutMs, [] { askForEnd(SIGUSR1); });
  });
}

TEST_P(FaultPoints, ARankAborts) {
  ::signal(SIGUSR1, askForEnd);
  const std::vector<Point> points = pointsOf(Kind::Threads, GetParam());
  for (const Point& p : points) {
    const std::string transport = p.transport(SIGUSR1);
    const World world{Kind::Threads, p.ranks, transport.c_str(), kTimeoutMs};
    ASSERT_EQ(failures(world, [&](const Rank& r) { return callAndAbort(r, p); }), "")
        << describe(p);
  }
  report(points.size());
}

// The call ends, right or aborted, although its communicator is gone.
std::string callAndLose(const Rank& r, const Point& p) {
  const Case c = caseOf(*p.scene, p.ranks);
  CheckedCall call(c, r);
  const weftResult_t result = call.make();
  if (result == weftSuccess) return call.check();
  call.takeBack();
  if (result != weftAborted) return outcome(result, nullptr);
  return call.isUntouched() ? "" : "a buffer was written after the failure";
}

std::string callAndDestroy(const Rank& r, const Point& p) {
  if (r.rank != p.victim) return callUntilTold(r, p, weftAborted, kTimeoutMs, [] {});
  std::string wrong = endWithin(r, weftCommDestroy, [&] { return callAndLose(r, p); });
  if (wrong.empty() && weftBarrier(r.comm, nullptr, nullptr) != weftInvalidArgument)
    wrong = "it was not destroyed";
  return wrong;
}

// A world of threads for each point.
void sideBySide(const std::vector<Point>& points,
                std::string (*body)(const Rank& r, const Point& p)) {
  std::vector<std::string> failed(points.size());
  std::vector<std::thread> worlds;
  for (std::size_t i = 0; i < points.size(); ++i) {
    worlds.emplace_back([&, i] {
      const std::string transport = points[i].transport(SIGUSR1);
      const World world{Kind::Threads, points[i].ranks, transport.c_str(), kTimeoutMs};
      failed[i] = failures(world, [&](const Rank& r) { return body(r, points[i]); });
    });
  }
  for (std::thread& world : worlds) world.join();
  for (std::size_t i = 0; i < points.size(); ++i) EXPECT_EQ(failed[i], "") << describe(points[i]);
}

// At each rank's first put of each scene, side by side: the destruction waits a second for a call.
TEST_P(FaultPoints, ARankIsDestroyed) {
  ::signal(SIGUSR1, askForEnd);
  std::vector<Point> points = pointsOf(Kind::Threads, GetParam());
  // A first put that writes into a peer's own buffer (a gather's that is direct; else the first is a
  // signal) would do so a second late, when the peer has given up the wait for it: see weft.h.
  std::erase_if(points, [](const Point& p) {
    return p.put != 1 || p.isAfter() || (p.scene->form == Form::Gather && p.victim != 0);
  });
  sideBySide(points, callAndDestroy);
  report(points.size());
}

// ---- A link is cut ----------------------------------------------------------------------------

// What the ranks of a world with a cut link got.
struct Cut {
  int from = 0, to = 0;
  std::atomic<int> failedCalls{0}, succeeded{0};
};

std::string blamesEitherEnd(const Rank& r, weftResult_t result, const Cut& cut) {
  const std::string one = blames(r, result, weftRemoteError, cut.to);
  return one.empty() ? "" : blames(r, result, weftRemoteError, cut.from).empty() ? "" : one;
}

std::string callOverCut(const Rank& r, const Scene& scene, Cut& cut) {
  const Case c = caseOf(scene, r.ranks);
  CheckedCall call(c, r);
  const weftResult_t called = call.make();
  if (called != weftSuccess) {
    ++cut.failedCalls;
    const std::string wrong = blamesEitherEnd(r, called, cut);
    return wrong.empty() ? afterFailure(r, call, called) : wrong;
  }
  if (std::string wrong = call.check(); !wrong.empty()) return wrong;
  const weftResult_t after = weftBarrier(r.comm, nullptr, nullptr);
  if (after == weftSuccess) {
    ++cut.succeeded;
    return "";
  }
  return blamesEitherEnd(r, after, cut);
}

// The link breaks at its k-th put, for all k until the call makes fewer.
int cutAll(const Scene& scene, int ranks, int from, int to) {
  for (int k = 1;; ++k) {
    Cut cut{from, to};
    const std::string transport =
        "faulty:cut=" + std::to_string(k) + ":" + std::to_string(from) + "-" + std::to_string(to);
    const World world{Kind::Threads, ranks, transport.c_str(), kTimeoutMs};
    const std::string failed =
        failures(world, [&](const Rank& r) { return callOverCut(r, scene, cut); });
    EXPECT_EQ(failed, "") << scene.name << " of " << scene.count << ", " << transport;
    if (cut.failedCalls == 0 || !failed.empty()) return k;
    EXPECT_EQ(cut.succeeded, 0) << scene.name << ", " << transport;
  }
}

TEST_P(FaultPoints, ALinkIsCut) {
  const int ranks = GetParam();
  std::atomic<std::size_t> points{0};
  std::vector<std::thread> threads;  // each lost link takes a while to tell from a death
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from == to) continue;
      threads.emplace_back([&, from, to] {
        const std::size_t stride = strideOfCuts(ranks);
        for (auto i = static_cast<std::size_t>(from + to) % stride; i < std::size(kScenes);
             i += stride)
          points += static_cast<std::size_t>(cutAll(kScenes[i], ranks, from, to));
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  report(points);
}

// ---- A rank calls something else --------------------------------------------------------------

// Of two ranks nobody knows which is wrong; nor of three one of which has not come soon enough.
bool isOddOneOut(const Rank& r, int victim) {
  weftErrorInfo_t info = WEFT_ERROR_INFO_INITIALIZER;
  weftGetLastErrorInfo(r.comm, &info);
  return info.rank < 0 ? r.ranks == 2 || info.missingCount != 0 : info.rank == victim;
}

// One more element, or another collective.
std::string callSomethingElse(const Rank& r, const Point& p, bool other) {
  Case c = caseOf(*p.scene, p.ranks);
  if (r.rank == p.victim && other)
    c = caseOf(c.form == Form::Barrier ? kScenes[0] : kBarrier, p.ranks);
  if (r.rank == p.victim && !other) ++c.count;
  CheckedCall call(c, r);
  weftResult_t result = call.make();
  if (result == weftSuccess && c.isRooted() && mayBeThrough(*p.scene, r.rank, p.victim))
    result = weftBarrier(r.comm, nullptr, nullptr);
  if (result != weftMismatch || !isOddOneOut(r, p.victim))
    return result == weftSuccess ? "success" : outcome(result, r.comm);
  return afterFailure(r, call, weftMismatch);
}

TEST_P(FaultPoints, ARankCallsSomethingElse) {
  std::size_t points = 0;
  for (const Scene& scene : kScenes) {
    for (int victim = 0; victim < GetParam(); ++victim) {
      for (const bool other : {false, true}) {
        if (scene.form == Form::Shift || (scene.form == Form::Barrier && !other)) continue;
        if (kSanitized && !isTurnOf(scene, victim + other, 3)) continue;
        const Point p{&scene, GetParam(), victim};
        const World world{Kind::Threads, p.ranks, "faulty:1", kTimeoutMs};
        EXPECT_EQ(failures(world, [&](const Rank& r) { return callSomethingElse(r, p, other); }),
                  "")
            << describe(p);
        ++points;
      }
    }
  }
  report(points);
}

// ---- A rank's own application holds it up -------------------------------------------------------

// Behind a call on a stream that does not go on: the deadline holds before the turn has come, too.
std::string callBehindAStream(const Rank& r, const Point& p) {
  if (r.rank != p.victim)
    return blames(r, weftBarrier(r.comm, nullptr, nullptr), weftTimeout, p.victim);
  Steps steps;
  Gate gate;
  const Stream stream(steps);
  gate.holdUp(steps, stream);
  steps.ok(weftBarrier(r.comm, stream, nullptr), "queue a barrier");
  const Case c = caseOf(*p.scene, p.ranks);
  CheckedCall call(c, r);
  const double start = nowMs();
  const weftResult_t result = call.make(nullptr, kStoppedMs);
  std::string wrong = blames(r, result, weftTimeout, p.victim);
  if (nowMs() - start > kTimeoutMs / 2.0) wrong = "it did not return at its deadline";
  if (wrong.empty()) wrong = afterFailure(r, call, weftTimeout);
  gate.open();
  steps.gives(weftTimeout, weftStreamSynchronize(stream), "synchronize");
  return wrong.empty() ? steps.failed() : wrong;
}

TEST_P(FaultPoints, ARankHoldsItselfUp) {
  std::vector<Point> points;
  for (const Scene& scene : kScenes)
    for (int victim = 0; victim < GetParam(); ++victim)
      if (sweepsAll() || isTurnOf(scene, victim, kSanitized ? 6 : 2))
        points.push_back({&scene, GetParam(), victim});
  sideBySide(points, callBehindAStream);
  report(points.size());
}

}  // namespace
}  // namespace weft::testing
