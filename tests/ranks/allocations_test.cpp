// SPDX-License-Identifier: Apache-2.0
// The n-th allocation fails, for every n, on one rank: what was called ends on all ranks, with an
// error or right, long before its deadline; nothing ends the process, and the next world is sound.
// Where there are many, some of them; with RANKS_TEST_ALLOCATIONS=N all from the N-th on. Checkpoints
// are not among what is called: nlohmann's JSON allocates in its destructors, which ends the process.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "failing_allocator.h"
#include "shard_training.h"
#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

constexpr int kRanks = 2;
constexpr int kTimeoutMs = 40000 * kSlowdown;
constexpr double kPromptMs = kTimeoutMs / 4.0;
constexpr std::size_t kCount = 1000;
constexpr std::int64_t kAllOf = kSanitized ? 12 : 30;  // of the first: a call's own, on this thread

// ---- What ranks call -------------------------------------------------------------------------------

// What a rank sends and receives, made before allocations fail.
struct Numbers {
  std::vector<float> in, out;
  explicit Numbers(const Rank& r)
      : in(kCount * kRanks, static_cast<float>(r.rank + 1)), out(kCount * kRanks) {}
  bool are(float value) const {
    return std::all_of(out.begin(), out.begin() + kCount, [=](float x) { return x == value; });
  }
};

// A rank and what it has made; everything is destroyed by the end of a round.
struct Actor {
  Rank r;
  const weftUniqueId* ids = nullptr;  // two
  Numbers numbers{r};
  std::vector<weftParam_t> model = smallModel();
  Steps steps{};  // of what must not fail
  weftResult_t act = weftSuccess;

  // Notes the first error of what may fail.
  bool does(weftResult_t result) {
    if (act == weftSuccess) act = result;
    return result == weftSuccess;
  }
};

weftResult_t create(Actor& a, const weftUniqueId& id, weftComm_t* comm,
                    const char* transport = "auto") {
  weftConfig_t config = configOf({Kind::Processes, a.r.ranks, transport, kTimeoutMs});
  if (std::string_view(transport) == "ofi")  // who greets a rank that has failed waits for it
    config.initTimeoutMs = kSanitized ? 10000 : 5000;
  return weftCommInitRankConfig(comm, a.r.ranks, id, a.r.rank, &config);
}
weftResult_t create(Actor& a, const char* transport = "auto") {
  return create(a, a.ids[0], &a.r.comm, transport);
}

void allReduce(Actor& a, weftComm_t comm, weftStream_t stream = nullptr) {
  Numbers& n = a.numbers;
  a.does(weftAllReduce(n.in.data(), n.out.data(), kCount, weftFloat32, weftSum, comm, stream,
                       nullptr));
  if (stream != nullptr) a.does(weftStreamSynchronize(stream));
  if (a.act == weftSuccess) a.steps.expect(n.are(3), "a wrong sum");
}

void exchange(Actor& a, weftStream_t first, weftStream_t second) {
  Numbers& n = a.numbers;
  const int peer = 1 - a.r.rank;
  a.does(weftGroupStart());
  a.does(weftSend(n.in.data(), kCount, weftFloat32, peer, a.r.comm, first, nullptr));
  a.does(weftRecv(n.out.data(), kCount, weftFloat32, peer, a.r.comm, second, nullptr));
  a.does(weftGroupEnd());
  if (first != nullptr) a.does(weftStreamSynchronize(first));
  if (second != nullptr) a.does(weftStreamSynchronize(second));
  if (a.act == weftSuccess) a.steps.expect(n.are(static_cast<float>(peer + 1)), "wrong data");
}

weftResult_t makeShard(Actor& a, weftShard_t* shard) {
  const weftShardConfig_t config = shardConfig(weftFloat32);
  return weftShardCreate(shard, a.r.comm, a.model.data(), a.model.size(), &config);
}

// The first step.
void trainOnce(Actor& a, weftShard_t shard) {
  const weftStepArgs_t args = stepArgs();
  if (!a.does(weftShardStart(shard, 0)) || !a.does(weftStepBegin(shard, &args))) return;
  for (std::size_t p = a.model.size(); p-- > 0;)
    if (isTrained(a.model[p]) && !a.does(weftGradReady(shard, p))) return;
  if (a.does(weftGradDone(shard))) a.does(weftStepWait(shard, nullptr));
}

// ---- Scenes ----------------------------------------------------------------------------------------

// `prepare` makes what the scene needs besides a communicator and must not fail; `play` may.
struct Scene {
  const char* name;
  int stride;  // of the allocations that are tried
  bool creates;
  std::function<void(Actor&, const std::function<void()>& armed)> play;
};

using Armed = std::function<void()>;  // begins the count, on all ranks together

void playStreams(Actor& a, const Armed& armed, bool apart) {
  const Stream first(a.steps), second(a.steps);
  armed();
  if (apart)
    exchange(a, first, second);
  else
    allReduce(a, a.r.comm, first);
}

void playSplit(Actor& a, const Armed& armed) {
  weftComm_t half = nullptr;
  armed();
  if (a.does(weftCommSplit(a.r.comm, 0, a.r.rank, &half, nullptr))) allReduce(a, half);
  weftCommDestroy(half);
}

// Of several communicators: a rank that has not got all of them makes no call on those it has.
void useOrAbort(Actor& a, weftComm_t comm) {
  if (a.act == weftSuccess)
    allReduce(a, comm);
  else if (comm != nullptr)
    weftCommAbort(comm);
}

// Side by side, for which there must be threads.
void playCreationsInGroup(Actor& a, const Armed& armed) {
  weftComm_t second = nullptr;
  armed();
  a.does(weftGroupStart());
  a.does(create(a));
  a.does(create(a, a.ids[1], &second));
  a.does(weftGroupEnd());
  useOrAbort(a, a.r.comm);
  useOrAbort(a, second);
  weftCommDestroy(second);
}

void playSplitsInGroup(Actor& a, const Armed& armed) {
  const Twin twin(a.steps, a.r);
  weftComm_t halves[] = {nullptr, nullptr};
  armed();
  a.does(weftGroupStart());
  a.does(weftCommSplit(a.r.comm, 0, a.r.rank, &halves[0], nullptr));
  a.does(weftCommSplit(twin, 0, a.r.rank, &halves[1], nullptr));
  a.does(weftGroupEnd());
  for (const weftComm_t half : halves) useOrAbort(a, half);
  for (const weftComm_t half : halves) weftCommDestroy(half);
}

void playEveryCollective(Actor& a, const Armed& armed) {
  const weftComm_t comm = a.r.comm;
  const auto* in = a.numbers.in.data();
  auto* out = a.numbers.out.data();
  armed();
  a.does(weftAllGather(in, out, kCount, weftFloat32, comm, nullptr, nullptr)) &&
      a.does(weftReduceScatter(in, out, kCount, weftFloat32, weftSum, comm, nullptr, nullptr)) &&
      a.does(weftBroadcast(in, out, kCount, weftFloat32, 1, comm, nullptr, nullptr)) &&
      a.does(weftReduce(in, out, kCount, weftFloat32, weftSum, 0, comm, nullptr, nullptr)) &&
      a.does(weftAlltoAll(in, out, kCount, weftFloat32, comm, nullptr, nullptr)) &&
      a.does(weftGather(in, out, kCount, weftFloat32, 0, comm, nullptr, nullptr)) &&
      a.does(weftScatter(in, out, kCount, weftFloat32, 0, comm, nullptr, nullptr)) &&
      a.does(weftBarrier(comm, nullptr, nullptr));
}

// Errors need memory as well.
void playMismatch(Actor& a, const Armed& armed) {
  Numbers& n = a.numbers;
  armed();
  const std::size_t count = kCount - static_cast<std::size_t>(a.r.rank);
  const weftResult_t result = weftAllReduce(n.in.data(), n.out.data(), count, weftFloat32, weftSum,
                                            a.r.comm, nullptr, nullptr);
  a.steps.expect(result != weftSuccess, "no mismatch");
}

void playShard(Actor& a, const Armed& armed) {
  weftShard_t shard = nullptr;
  armed();
  if (a.does(makeShard(a, &shard))) trainOnce(a, shard);
  weftShardDestroy(shard);
}

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> all{
      {"creation", 41, true,
       [](Actor& a, const Armed& armed) {
         armed();
         if (a.does(create(a))) allReduce(a, a.r.comm);
       }},
      {"creation_by_libfabric", 211, true,
       [](Actor& a, const Armed& armed) {
         armed();
         if (a.does(create(a, "ofi"))) allReduce(a, a.r.comm);
       }},
      {"creations_in_group", 83, true, playCreationsInGroup},
      {"first_call", 3, false,
       [](Actor& a, const Armed& armed) { armed(), allReduce(a, a.r.comm); }},
      {"cached_call", 1, false,
       [](Actor& a, const Armed& armed) {
         allReduce(a, a.r.comm);
         armed();
         allReduce(a, a.r.comm);
       }},
      {"every_collective", 13, false, playEveryCollective},
      {"messages", 1, false,
       [](Actor& a, const Armed& armed) { armed(), exchange(a, nullptr, nullptr); }},
      {"stream", 3, false, [](Actor& a, const Armed& armed) { playStreams(a, armed, false); }},
      {"two_streams", 1, false, [](Actor& a, const Armed& armed) { playStreams(a, armed, true); }},
      {"split", 41, false, playSplit},
      {"splits_in_group", 83, false, playSplitsInGroup},
      {"mismatch", 3, false, playMismatch},
      {"shard", 61, false, playShard},
  };
  return all;
}

// ---- Rounds ----------------------------------------------------------------------------------------

// Where ranks meet, in memory that they share.
struct Meeting {
  std::atomic<int> arrived{0};
  std::atomic<bool> injected{false}, over{false};
  weftUniqueId ids[2] = {};

  bool meet(int round) {  // rounds count from 1
    arrived.fetch_add(1);
    for (const double start = nowMs(); arrived.load() < kRanks * round;) {
      if (nowMs() - start > 60000) return false;
      sleepMs(0.05);
    }
    return true;
  }
};

class Trial {
 public:
  Trial(const Scene& scene, Meeting& meeting, int rank)
      : scene_(scene), meeting_(meeting), rank_(rank) {}

  // Fails each allocation of the victim in turn, until there are no more; "" or what went wrong.
  std::string run(int victim) {
    const char* const from = std::getenv("RANKS_TEST_ALLOCATIONS");
    const int some = scene_.stride * (kSanitized && scene_.stride > 1 ? 4 : 1);
    const int stride = from != nullptr ? 1 : some;
    for (std::int64_t n = from != nullptr ? std::atoi(from) : 1; !meeting_.over;
         n += n < kAllOf ? 1 : stride - (n - 1) % stride) {
      const std::string failed = round(victim == rank_ ? n : 0);
      if (!failed.empty()) return "allocation " + std::to_string(n) + ": " + failed;
      rounds_ = static_cast<int>(n);
    }
    return "";
  }
  int allocations() const { return rounds_; }

 private:
  std::string round(std::int64_t n) {
    Actor a{.r = {rank_, kRanks, nullptr}, .ids = meeting_.ids};
    if (rank_ == 0) {
      for (weftUniqueId& id : meeting_.ids) a.steps.ok(weftGetUniqueId(&id), "make an id");
      meeting_.injected = false;
    }
    if (!meet()) return "the other rank did not come";
    if (!scene_.creates) a.steps.ok(create(a), "create");
    double start = 0;
    scene_.play(a, [&] {
      meet();
      start = nowMs();
      failAllocation(n);
    });
    if (n > 0 && stopFailing()) meeting_.injected = true;
    const double took = nowMs() - start;
    if (!meet()) return "the other rank did not come back";
    if (!meeting_.injected) a.steps.ok(a.act, "none failed");
    a.steps.expect(took < kPromptMs, "took " + std::to_string(took) + " ms");
    weftCommDestroy(a.r.comm);
    if (!meet()) return "the other rank did not end";
    if (!meeting_.injected) meeting_.over = true;
    return meet() ? a.steps.failed() : "the other rank did not end";
  }
  bool meet() { return meeting_.meet(++met_); }

  const Scene& scene_;
  Meeting& meeting_;
  const int rank_;
  int met_ = 0, rounds_ = 0;
};

class Allocations : public ::testing::TestWithParam<std::tuple<Scene, int>> {};

TEST_P(Allocations, AnyMayFail) {
  const auto& [scene, victim] = GetParam();
  Shared<Meeting> meeting;
  Shared<std::atomic<int>> allocations;
  EXPECT_EQ(failuresIn(forkRanks(kRanks,
                                 [&](int rank) {
                                   Trial trial(scene, *meeting, rank);
                                   const std::string failed = trial.run(victim);
                                   if (rank == victim) *allocations = trial.allocations();
                                   return failed;
                                 })),
            "");
  RecordProperty("allocations", allocations->load());
}

// One rank alone has no memory from its n-th allocation on: what it called says so, and it can go on
// when there is some again.
TEST(LastingLack, IsToldWithoutMemory) {
  for (std::int64_t n = 1; n <= 10; ++n) {
    weftComm_t comm = nullptr;
    weftStream_t stream = nullptr;
    weftUniqueId id;
    failAllocationsFrom(n);
    const weftResult_t results[] = {weftGetUniqueId(&id), weftCommInitAll(&comm, 1, nullptr),
                                    weftStreamCreate(&stream)};
    ASSERT_TRUE(stopFailing());
    EXPECT_EQ(std::ranges::count(results, weftOutOfMemory), 3) << "from " << n << " on";
    EXPECT_STRNE(weftGetLastError(nullptr), "");
    weftStreamDestroy(stream);
    EXPECT_EQ(weftCommInitAll(&comm, 1, nullptr), weftSuccess) << weftGetLastError(nullptr);
    weftCommDestroy(comm);
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, Allocations,
                         ::testing::Combine(::testing::ValuesIn(scenes()), ::testing::Range(0, 2)),
                         [](const auto& at) {
                           return std::string(std::get<0>(at.param).name) + "_on_" +
                                  std::to_string(std::get<1>(at.param));
                         });

}  // namespace
}  // namespace weft::testing
