// SPDX-License-Identifier: Apache-2.0
// Links that are lost between living ranks: the call in flight fails and names both ends, the next
// one runs by another way, if there is one.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../has_libfabric.h"
#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Recovery : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!test::hasLibfabric()) GTEST_SKIP() << "no libfabric for this build";
    ::setenv("WEFT_OFI_PROVIDER", "tcp;ofi_rxm", 1);
  }
  void TearDown() override { ::unsetenv("WEFT_OFI_PROVIDER"); }
};
INSTANTIATE_TEST_SUITE_P(Kinds, Recovery, ::testing::Values(Kind::Threads, Kind::Processes),
                         [](const auto& kind) { return nameOf(kind.param); });

// With this algorithm each rank puts to each other one, twice in a call: cuts are counted in puts,
// and what is chosen without it may need no put over the link in question, on some machines.
constexpr const char* kOverAllLinks = "mesh";

// Call number `i`: a sum that differs from call to call and at each place.
weftResult_t sum(const Rank& r, int i, std::vector<float>* out,
                 const char* algorithm = kOverAllLinks) {
  std::vector<float> in(out->size());
  for (std::size_t k = 0; k < in.size(); ++k)
    in[k] = static_cast<float>(r.rank + 1) * static_cast<float>(i + 1) + static_cast<float>(k % 7);
  weftOpts_t opts = WEFT_OPTS_INITIALIZER;
  opts.algorithm = algorithm;
  return weftAllReduce(in.data(), out->data(), in.size(), weftFloat, weftSum, r.comm, nullptr,
                       &opts);
}
bool isSum(const Rank& r, int i, const std::vector<float>& out) {
  const int each = r.ranks * (r.ranks + 1) / 2;
  for (std::size_t k = 0; k < out.size(); ++k)
    if (out[k] != static_cast<float>(each * (i + 1)) +
                      static_cast<float>(static_cast<std::size_t>(r.ranks) * (k % 7)))
      return false;
  return true;
}

struct Sums {
  int lost = 0;  // calls that failed
  std::string text;
};

// `calls` sums; all that end well are right, the others say RemoteError.
std::string sums(const Rank& r, int calls, std::size_t count, Sums* done,
                 const char* algorithm = kOverAllLinks) {
  std::vector<float> out(count);
  for (int i = 0; i < calls; ++i) {
    const weftResult_t result = sum(r, i, &out, algorithm);
    const std::string at = "call " + std::to_string(i) + ": ";
    if (result == weftSuccess && !isSum(r, i, out)) return at + "wrong";
    if (result == weftSuccess) continue;
    const std::string said = outcome(result, r.comm);
    if (result != weftRemoteError) return at + said;
    ++done->lost;
    done->text += said + "\n";
  }
  return "";
}

std::string edges(const Rank& r) {
  std::string lines(2000, '\0');
  weftCommEdges(r.comm, lines.data(), lines.size());
  return lines.c_str();
}

std::string asyncError(const Rank& r) {
  weftResult_t async = weftSuccess;
  weftCommGetAsyncError(r.comm, &async);
  return async == weftSuccess ? "" : "a recovered communicator has an error";
}

TEST_P(Recovery, TheNextCallGoesAnotherWay) {
  const World world{GetParam(), 4, "faulty(ofi):cut=100:0-1"};
  const std::string failed = failures(world, [](const Rank& r) -> std::string {
    Sums done;
    if (std::string wrong = sums(r, 60, 5000, &done); !wrong.empty()) return wrong;
    if (done.lost > 2 || (done.lost == 0 && r.rank == 0)) return "lost: " + done.text;
    if (done.lost > 0 && !has(done.text, "the link from rank 0 to rank 1")) return done.text;
    const std::string memory = nameOf(GetParam()) == "threads" ? "local" : "shm";
    if (r.rank < 2 && !has(edges(r), "rank " + std::to_string(1 - r.rank) + ": " + memory))
      return edges(r);
    if (!has(edges(r), "tcp;ofi_rxm")) return edges(r);
    return asyncError(r);
  });
  EXPECT_EQ(failed, "");
}

// No pair is left for the wire.
TEST_P(Recovery, TwoRanksGoOnByMemoryAlone) {
  const World world{GetParam(), 2, "faulty(ofi):cut=30:1-0"};
  const std::string failed = failures(world, [](const Rank& r) -> std::string {
    Sums done;
    if (std::string wrong = sums(r, 60, 5000, &done); !wrong.empty()) return wrong;
    if (done.lost > 2) return done.text;
    const std::string memory = nameOf(GetParam()) == "threads" ? "local" : "shm";
    return edges(r) == "rank " + std::to_string(1 - r.rank) + ": " + memory ? asyncError(r)
                                                                            : edges(r);
  });
  EXPECT_EQ(failed, "");
}

// In one call all ranks fail that need the lost link.
TEST_P(Recovery, TheCallInFlightFailsOnAllRanks) {
  const World world{GetParam(), 3, "faulty(ofi):cut=40:2-1"};
  const std::string failed = failures(world, [](const Rank& r) -> std::string {
    Sums done;
    if (std::string wrong = sums(r, 2, std::size_t{1} << 21, &done); !wrong.empty()) return wrong;
    if (done.lost != 1) return std::to_string(done.lost) + " calls failed: " + done.text;
    return has(done.text, "the link from rank 2 to rank 1") ? "" : done.text;
  });
  EXPECT_EQ(failed, "");
}

// Ranks that do not need the link in a call finish it, and enter the next: the calls keep in step.
TEST_P(Recovery, RanksThatAreACallAhead) {
  const World world{GetParam(), 4, "faulty(ofi):cut=20:1-0"};
  const std::vector<std::string> said = run(world, [](const Rank& r) -> std::string {
    Sums done;
    const std::string wrong = sums(r, 60, 5, &done, "one-shot");
    return wrong.empty() ? std::to_string(done.lost) : wrong;
  });
  // The one that cannot put fails first, and once more if a rank was ahead of it.
  EXPECT_TRUE(said[1] == "1" || said[1] == "2") << said[1];
  for (const std::string& lost : said) EXPECT_TRUE(lost >= "0" && lost <= said[1]) << lost;
}

TEST_P(Recovery, ASecondLossIsRecoveredToo) {
  const World world{GetParam(), 4, "faulty(ofi):cut=60:0-1,cut=150:2-1"};
  const std::string failed = failures(world, [](const Rank& r) -> std::string {
    Sums done;
    if (std::string wrong = sums(r, 200, 3000, &done); !wrong.empty()) return wrong;
    if (r.rank == 2 && !has(done.text, "the link from rank 2 to rank 1")) return done.text;
    if (done.lost > 4) return done.text;
    const std::string memory = nameOf(GetParam()) == "threads" ? "local" : "shm";
    return r.rank != 1 || has(edges(r), "ranks 0,2: " + memory) ? asyncError(r) : edges(r);
  });
  EXPECT_EQ(failed, "");
}

// All others of rank 0 go by memory then, and theirs to each other do not: it still needs to hear of them.
TEST_P(Recovery, ARankGoesOnThatHasLostAllItsLinks) {
  const World world{GetParam(), 4, "faulty(ofi):cut=60:0-1,cut=60:0-2,cut=60:0-3,cut=150:2-1"};
  const std::string failed = failures(world, [](const Rank& r) -> std::string {
    Sums done;
    if (std::string wrong = sums(r, 200, 3000, &done); !wrong.empty()) return wrong;
    if (r.rank == 2 && !has(done.text, "the link from rank 2 to rank 1")) return done.text;
    if (done.lost > 8) return done.text;
    const std::string memory = nameOf(GetParam()) == "threads" ? "local" : "shm";
    return r.rank != 0 || edges(r) == "ranks 1-3: " + memory ? asyncError(r) : edges(r);
  });
  EXPECT_EQ(failed, "");
}

// A link of a seed's choice is cut at a put of its choice, in sums of all sizes. How often it is:
// by default twice, else as RANKS_TEST_RECOVERIES says.
std::string cutOne(Kind kind, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const int ranks = 2 + static_cast<int>(random() % 3);
  const int from = static_cast<int>(random() % static_cast<unsigned>(ranks));
  const int to = (from + 1 + static_cast<int>(random() % static_cast<unsigned>(ranks - 1))) % ranks;
  const std::string transport = "faulty(ofi):seed=" + std::to_string(seed) +
                                ",cut=" + std::to_string(1 + random() % 150) + ":" +
                                std::to_string(from) + "-" + std::to_string(to);
  const std::size_t count = std::size_t{1} << random() % 18;
  const World world{kind, ranks, transport.c_str()};
  Shared<std::atomic<int>> lost;
  const std::string failed = failures(world, [&](const Rank& r) -> std::string {
    Sums done;
    const std::string wrong = sums(r, 200, count, &done);
    *lost += done.lost;
    return wrong.empty() && done.lost > 2 ? done.text : wrong;
  });
  if (failed.empty() && lost->load() != 0) return "";
  return transport + ", " + std::to_string(count) +
         " floats: " + (failed.empty() ? "nothing was lost" : failed);
}

TEST_P(Recovery, LinksOfAllSeeds) {
  const char* const wanted = std::getenv("RANKS_TEST_RECOVERIES");
  const int runs = wanted != nullptr ? std::atoi(wanted) : 2;
  int passed = 0;
  for (int seed = 1; seed <= runs; ++seed) {
    const std::string failed = cutOne(GetParam(), static_cast<std::uint64_t>(seed));
    EXPECT_EQ(failed, "");
    passed += failed.empty();
  }
  std::printf("  %d of %d cut links recovered\n", passed, runs);
}

// Point-to-point: a ring of transfers, each rank in each call.
TEST_P(Recovery, TransfersGoOn) {
  const World world{GetParam(), 3, "faulty(ofi):cut=30:1-2"};
  const std::string failed = failures(world, [](const Rank& r) -> std::string {
    const int right = (r.rank + 1) % r.ranks, left = (r.rank + r.ranks - 1) % r.ranks;
    int lost = 0;
    for (int i = 0; i < 40; ++i) {
      int mine = 1000 * r.rank + i, theirs = -1;
      weftGroupStart();
      weftSend(&mine, 1, weftInt32, right, r.comm, nullptr, nullptr);
      weftRecv(&theirs, 1, weftInt32, left, r.comm, nullptr, nullptr);
      const weftResult_t result = weftGroupEnd();
      if (result != weftSuccess && ++lost > 1) return outcome(result, r.comm);
      if (result == weftSuccess && theirs != 1000 * left + i) return "wrong message";
      // So that no message is on its way when a later one finds the link lost.
      if (weftBarrier(r.comm, nullptr, nullptr) != weftSuccess && ++lost > 2) return "no barrier";
    }
    return "";
  });
  EXPECT_EQ(failed, "");
}

// ---- what is not recovered ----

// A message that has left and has not been received would be taken for a later one.
TEST_P(Recovery, NotWhileAMessageIsOnItsWay) {
  const World world{GetParam(), 3, "faulty(ofi):cut=20:0-1"};
  const std::string failed = failures(world, [](const Rank& r) -> std::string {
    int message = 7;
    if (r.rank == 0) weftSend(&message, 1, weftInt32, 2, r.comm, nullptr, nullptr);
    std::vector<float> out(5000);
    weftResult_t result = weftSuccess;
    for (int i = 0; i < 1000 && result == weftSuccess; ++i) result = sum(r, i, &out);
    result = sum(r, 0, &out);
    const std::string said = outcome(result, r.comm);
    return result == weftRemoteError && has(said, "had begun 1 sends to rank 2 (host ") ? "" : said;
  });
  EXPECT_EQ(failed, "");
}

// Calls until one fails.
std::string untilLost(const Rank& r) {
  std::vector<float> out(5000);
  for (int i = 0; i < 1000; ++i)
    if (const weftResult_t result = sum(r, i, &out); result != weftSuccess)
      return outcome(result, r.comm);
  return "no call failed";
}

std::string nextCall(const Rank& r) {
  std::vector<float> out(1);
  const weftResult_t result = sum(r, 0, &out);
  return result == weftSuccess ? "success" : outcome(result, r.comm);
}

// All but rank 2 come to the next call; `rank2` is what that one does instead. What each says of
// its later calls, by rank.
std::vector<std::string> withoutRank2(const std::function<void(const Rank&)>& rank2,
                                      int timeoutMs = 20000) {
  const World world{Kind::Processes, 3, "faulty(ofi):cut=20:0-1", timeoutMs};
  return run(world, [&](const Rank& r) -> std::string {
    const std::string first = untilLost(r);
    if (!has(first, "the link from rank 0 to rank 1 was cut")) return first;
    if (r.rank == 2) return rank2(r), "";
    const std::string next = nextCall(r);
    weftResult_t async = weftSuccess;
    weftCommGetAsyncError(r.comm, &async);
    if (async == weftSuccess) return "no error after " + next;
    return nextCall(r) == next ? next : "then another error after " + next;
  });
}

class NotRecovered : public Recovery {};
INSTANTIATE_TEST_SUITE_P(Kinds, NotRecovered, ::testing::Values(Kind::Processes),
                         [](const auto& kind) { return nameOf(kind.param); });

void expectBoth(const std::vector<std::string>& texts, const std::string& part) {
  EXPECT_TRUE(has(texts[0], "the link from rank 0 to rank 1 was cut")) << texts[0];
  EXPECT_TRUE(has(texts[0], part)) << texts[0];
  EXPECT_EQ(texts[0], texts[1]);
}

TEST_P(NotRecovered, WithoutARankThatDied) {
  expectBoth(withoutRank2([](const Rank&) { ::raise(SIGKILL); }), "not recovered: rank 2 (host ");
}

TEST_P(NotRecovered, WithoutARankThatHasLeft) {
  expectBoth(withoutRank2([](const Rank& r) { weftCommDestroy(r.comm); }),
             "has destroyed its end of the communicator");
}

TEST_P(NotRecovered, WithoutARankThatDoesNotCome) {
  expectBoth(withoutRank2([](const Rank&) { sleepMs(4000); }, 2000),
             "not recovered: rank 2 did not make a call in time");
}

TEST_P(NotRecovered, AfterAnAbort) {
  const auto texts = withoutRank2([](const Rank& r) {
    weftCommAbort(r.comm);
    sleepMs(300);
  });
  EXPECT_TRUE(has(texts[0], "was aborted by rank 2")) << texts[0];
  EXPECT_EQ(texts[0], texts[1]);
}

// Whatever comes after the failure of a call, its result and its text are of one error: that of the
// lost link, or of the abort if that came before the call had ended.
TEST_P(NotRecovered, ALaterErrorIsNotThatOfTheCall) {
  const World world{GetParam(), 3, "faulty(ofi):cut=20:0-1"};
  const std::string failed = failures(world, [](const Rank& r) -> std::string {
    const auto isAbort = [&] { return has(weftGetLastError(r.comm), "was aborted by rank 2"); };
    std::vector<float> out(5000);
    weftResult_t result = weftSuccess;
    for (int i = 0; i < 1000 && result == weftSuccess; ++i) result = sum(r, i, &out);
    if (r.rank == 2) weftCommAbort(r.comm);
    sleepMs(300);
    if (r.rank == 2) return "";
    if (isAbort() != (result == weftAborted)) return "the call: " + outcome(result, r.comm);
    for (int i = 0; i < 500 && result != weftAborted; ++i, sleepMs(10))
      weftCommGetAsyncError(r.comm, &result);
    return isAbort() ? "" : "in the end: " + outcome(result, r.comm);
  });
  EXPECT_EQ(failed, "");
}

}  // namespace
}  // namespace weft::testing
