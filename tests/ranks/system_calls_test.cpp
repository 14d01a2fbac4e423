// SPDX-License-Identifier: Apache-2.0
// A system call of weft's fails on one rank: what was called ends on all ranks, with an error that says
// something or right, long before its deadline; nothing ends the process, and the next world is sound.
// What is only interrupted fails nothing. The first calls of each kind fail in turn; with
// RANKS_TEST_SYSTEM_CALLS=N all from the N-th on.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>

#include "../has_libfabric.h"
#include "failing_calls.h"
#include "trials.h"

namespace weft::testing {
namespace {

namespace fs = std::filesystem;

const char* const kFrom = std::getenv("RANKS_TEST_SYSTEM_CALLS");
const bool kVerbose = kFrom != nullptr;
constexpr int kLibfabricMs = 3 * kShortMs;           // which looks at all of its providers first
constexpr int kSplitMs = kSanitized ? 12000 : 6000;  // within what a round may take

std::string folder;  // of the checkpoints of a test

void playCreation(Actor& a, const Armed& armed) {
  armed();
  if (a.does(create(a))) allReduce(a, a.r.comm);
}

void playCall(Actor& a, const Armed& armed) {
  armed();
  allReduce(a, a.r.comm);
}

void playStream(Actor& a, const Armed& armed) {
  const Stream stream(a.steps);
  armed();
  allReduce(a, a.r.comm, stream);
}

void playMemory(Actor& a, const Armed& armed) {
  void* memory = nullptr;
  armed();
  if (a.does(weftMemAlloc(&memory, 1 << 20))) a.does(weftMemFree(memory));
}

void playCheckpoint(Actor& a, const Armed& armed) {
  const std::string dir = folder + "/checkpoint", file = folder + "/model.safetensors";
  weftShard_t shard = nullptr;
  const auto save = [&] {
    return a.does(weftShardSave(shard, dir.c_str(), "{}", 1)) && a.does(weftShardSaveWait(shard));
  };
  a.steps.ok(makeShard(a, &shard), "make a shard");
  trainOnce(a, shard);
  armed();
  if (!save()) save();  // the next one runs, on all ranks
  a.does(weftShardLoad(shard, dir.c_str(), nullptr, 0)) &&
      a.does(weftShardExport(shard, file.c_str(), 1));
  weftShardDestroy(shard);
}

// The link is lost once; no other call fails unless something else does.
void playRecovery(Actor& a, const Armed& armed) {
  weftOpts_t opts = WEFT_OPTS_INITIALIZER;
  opts.algorithm = "mesh";
  Numbers& n = a.numbers;
  armed();
  for (int lost = 0, i = 0; i < 12; ++i) {
    const weftResult_t result = weftAllReduce(n.in.data(), n.out.data(), kNumbers, weftFloat32,
                                              weftSum, a.r.comm, nullptr, &opts);
    if (result == weftSuccess) a.steps.expect(n.are(3), "a wrong sum");
    if (result == weftRemoteError && ++lost == 1) continue;
    if (!a.does(result)) break;
  }
}

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> all{
      {"creation", 2, true, playCreation, "auto", kShortMs},
      {"creation_by_libfabric", 1, true, playCreation, "ofi", kLibfabricMs},
      {"first_call", 9, false, playCall},
      {"stream", 9, false, playStream},
      {"split", 1, false, playSplit, "auto", kSplitMs},
      {"split_by_id", 1, false, playSplitById, "auto", kSplitMs},
      {"memory", 9, false, playMemory},
      {"checkpoint", 1, false, playCheckpoint, "auto", kSplitMs, true},
      {"recovery", 1, false, playRecovery, "faulty(ofi):cut=4:0-1", kLibfabricMs},
  };
  return all;
}

// What a rank says of its failure is a sentence with a cause.
std::string soundText(const Actor& a) {
  if (a.act == weftSuccess) return "";
  const bool sound = a.said.size() > 20 && a.said.find(": Success") == std::string::npos &&
                     a.said.find("unexpected:") == std::string::npos &&
                     a.said.find("another user") == std::string::npos;  // there is one alone
  if (kVerbose) std::fprintf(stderr, "rank %d: %s\n", a.r.rank, a.said.c_str());
  return sound ? "" : "says '" + a.said + "'";
}

// The calls that a scene makes are counted in its first round.
class EachKind {
 public:
  EachKind(Failing how, long most) : how_(how), most_(most) {}

  void begin(std::int64_t n) {
    if (n > 1)
      failCall(plan_[static_cast<std::size_t>(n - 2)].first,
               plan_[static_cast<std::size_t>(n - 2)].second, how_);
    else
      failCall(nullptr, 0, how_);
  }
  std::int64_t next(std::int64_t n) {
    long made = 0;
    for (int i = 0; n == 1 && kindOfCall(i, &made) != nullptr; ++i)
      for (long k = 1; k <= std::min(made, most_); ++k) plan_.emplace_back(kindOfCall(i, &made), k);
    return n <= std::ssize(plan_) ? n + 1 : 0;
  }

 private:
  const Failing how_;
  const long most_;
  std::vector<std::pair<const char*, long>> plan_;  // a kind, and which of its calls
};

bool anyFailed() {
  const char* const failed = stopFailingCalls();
  if (failed != nullptr && kVerbose) std::fprintf(stderr, "%s failed\n", failed);
  return failed != nullptr;
}

Fault firstOfEachKind(Failing how, long most) {
  const auto kinds = std::make_shared<EachKind>(how, most);
  return {[=](std::int64_t n) { kinds->begin(n); }, anyFailed, 1,
          [=](std::int64_t n, bool) { return kinds->next(n); }};
}

Fault eachFrom(Failing how, std::int64_t first) {
  return {[=](std::int64_t n) { failCall(nullptr, n, how); }, anyFailed, first, every(1)};
}

class SystemCalls : public ::testing::TestWithParam<std::tuple<Scene, int>> {
 protected:
  void SetUp() override {
    const Scene& scene = std::get<0>(GetParam());
    const bool wire = std::string(scene.name).ends_with("libfabric") || scene.transport[0] == 'f';
    if (wire && !test::hasLibfabric()) GTEST_SKIP() << "no libfabric for this build";
    if (kSanitized && scene.transport[0] == 'f') GTEST_SKIP() << "a minute under a sanitizer";
    if (!kFrom && scene.transport[0] == 'f' && std::get<1>(GetParam()) == 0)
      GTEST_SKIP() << "./dev soak calls: half a minute, as on the other end of the link";
    folder = ::testing::TempDir() + "weft_system_calls_" + std::to_string(::getpid());
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  void failEach(Failing how, const Trial::Check& check) {
    const auto& [scene, victim] = GetParam();
    Shared<Meeting> meeting;
    Shared<std::atomic<std::int64_t>> calls;
    const Fault fault =
        kFrom != nullptr ? eachFrom(how, std::atoi(kFrom)) : firstOfEachKind(how, scene.some);
    const auto body = [&](int rank) {
      Trial trial(scene, fault, *meeting, rank);
      const std::string failed = trial.check(check).run(victim);
      if (rank == victim) *calls = trial.last();
      return failed;
    };
    EXPECT_EQ(failuresIn(forkRanks(kActors, body)), "");
    RecordProperty("calls", std::to_string(calls->load()));
  }
};

TEST_P(SystemCalls, AnyMayBeRefused) { failEach(kRefused, soundText); }

TEST_P(SystemCalls, AnyMayBeInterrupted) {
  failEach(kInterrupted, [](const Actor& a) { return a.act == weftSuccess ? "" : a.said; });
}

// What the creation of a communicator of one rank says if its n-th mapping and all later ones fail.
std::string createWithoutMappingsFrom(long n) {
  ::setenv("WEFT_TUNE_FILE", "off", 1);  // it measures
  weftComm_t comm = nullptr;
  failCallsFrom("mmap", n);
  const weftResult_t made = weftCommInitAll(&comm, 1, nullptr);
  stopFailingCalls();
  std::string said = outcome(made, nullptr);
  weftCommDestroy(comm);
  return said;
}

TEST(LastingLack, OfMappingsIsSaidByWhateverLacksThem) {
  bool calibrates = false;
  std::string said = "nothing yet";
  for (long n = 1; !said.empty() && n < 100; ++n) {
    said = forkRanks(1, [n](int) { return createWithoutMappingsFrom(n); })[0];
    EXPECT_TRUE(said.empty() || said.find("fix: ") != std::string::npos) << n << ": " << said;
    calibrates |= said.find(
                      "rank 0: no memory to calibrate this machine; fix: raise the limit of "
                      "memory") != std::string::npos;
  }
  EXPECT_EQ(said, "") << "it never had enough";
  EXPECT_TRUE(calibrates);
}

INSTANTIATE_TEST_SUITE_P(Scenes, SystemCalls,
                         ::testing::Combine(::testing::ValuesIn(scenes()), ::testing::Range(0, 2)),
                         [](const auto& at) {
                           return std::string(std::get<0>(at.param).name) + "_on_" +
                                  std::to_string(std::get<1>(at.param));
                         });

}  // namespace
}  // namespace weft::testing
