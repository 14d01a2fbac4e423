// SPDX-License-Identifier: Apache-2.0
// The n-th allocation fails, for every n, on one rank: what was called ends on all ranks, with an
// error or right, long before its deadline; nothing ends the process, and the next world is sound.
// Where there are many, some of them; with RANKS_TEST_ALLOCATIONS=N all from the N-th on. Checkpoints
// are not among what is called: nlohmann's JSON allocates in its destructors, which ends the process.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "failing_allocator.h"
#include "trials.h"

namespace weft::testing {
namespace {

constexpr std::int64_t kAllOf = kSanitized ? 12 : 30;  // of the first: a call's own, on this thread

void exchange(Actor& a, weftStream_t first, weftStream_t second) {
  Numbers& n = a.numbers;
  const int peer = 1 - a.r.rank;
  a.does(weftGroupStart());
  a.does(weftSend(n.in.data(), kNumbers, weftFloat32, peer, a.r.comm, first, nullptr));
  a.does(weftRecv(n.out.data(), kNumbers, weftFloat32, peer, a.r.comm, second, nullptr));
  a.does(weftGroupEnd());
  if (first != nullptr) a.does(weftStreamSynchronize(first));
  if (second != nullptr) a.does(weftStreamSynchronize(second));
  if (a.act == weftSuccess) a.steps.expect(n.are(static_cast<float>(peer + 1)), "wrong data");
}

// ---- Scenes ----------------------------------------------------------------------------------------

void playStreams(Actor& a, const Armed& armed, bool apart) {
  const Stream first(a.steps), second(a.steps);
  armed();
  if (apart)
    exchange(a, first, second);
  else
    allReduce(a, a.r.comm, first);
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
  a.does(weftAllGather(in, out, kNumbers, weftFloat32, comm, nullptr, nullptr)) &&
      a.does(weftReduceScatter(in, out, kNumbers, weftFloat32, weftSum, comm, nullptr, nullptr)) &&
      a.does(weftBroadcast(in, out, kNumbers, weftFloat32, 1, comm, nullptr, nullptr)) &&
      a.does(weftReduce(in, out, kNumbers, weftFloat32, weftSum, 0, comm, nullptr, nullptr)) &&
      a.does(weftAlltoAll(in, out, kNumbers, weftFloat32, comm, nullptr, nullptr)) &&
      a.does(weftGather(in, out, kNumbers, weftFloat32, 0, comm, nullptr, nullptr)) &&
      a.does(weftScatter(in, out, kNumbers, weftFloat32, 0, comm, nullptr, nullptr)) &&
      a.does(weftBarrier(comm, nullptr, nullptr));
}

// Errors need memory as well.
void playMismatch(Actor& a, const Armed& armed) {
  Numbers& n = a.numbers;
  armed();
  const std::size_t count = kNumbers - static_cast<std::size_t>(a.r.rank);
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
         if (a.does(create(a))) allReduce(a, a.r.comm);
       },
       "ofi"},
      {.name = "creations_in_group",
       .some = 83,
       .creates = true,
       .play = playCreationsInGroup,
       .ids = 2},
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
      {"split_by_id", 5, false, playSplitById},
      {"splits_in_group", 83, false, playSplitsInGroup},
      {"mismatch", 3, false, playMismatch},
      {"shard", 61, false, playShard},
  };
  return all;
}

// All of the first, then each `stride`-th.
auto firstThenEvery(std::int64_t stride) {
  return [=](std::int64_t n, bool failed) {
    return !failed ? 0 : n < kAllOf ? n + 1 : n + stride - (n - 1) % stride;
  };
}

class Allocations : public ::testing::TestWithParam<std::tuple<Scene, int>> {};

TEST_P(Allocations, AnyMayFail) {
  const auto& [scene, victim] = GetParam();
  Shared<Meeting> meeting;
  Shared<std::atomic<std::int64_t>> tried;
  const char* const from = std::getenv("RANKS_TEST_ALLOCATIONS");
  const int some = scene.some * (kSanitized && scene.some > 1 ? 4 : 1);
  const Fault fault{failAllocation, stopFailing, from ? std::atoi(from) : 1,
                    firstThenEvery(from ? 1 : some)};
  EXPECT_EQ(failuresIn(forkRanks(kActors,
                                 [&](int rank) {
                                   Trial trial(scene, fault, *meeting, rank);
                                   const std::string failed = trial.run(victim);
                                   if (rank == victim) *tried = trial.last();
                                   return failed;
                                 })),
            "");
  RecordProperty("allocations", std::to_string(tried->load()));
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
