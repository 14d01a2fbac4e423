// SPDX-License-Identifier: Apache-2.0
// What waiting costs the machine. Speed is measured in perf/, not here.
#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "../has_libfabric.h"
#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

double threadCpuMs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

weftResult_t sum(const Rank& r, float* value) {
  return weftAllReduce(value, value, 1, weftFloat, weftSum, r.comm, nullptr, nullptr);
}

class Waiting : public ::testing::TestWithParam<World> {};

TEST_P(Waiting, IdleRanksUseNoCpu) {
  constexpr double kLateMs = 1000;
  EXPECT_EQ(failures(GetParam(),
                     [&](const Rank& r) {
                       Steps steps;
                       float value = 1;
                       steps.ok(sum(r, &value), "together");
                       const double before = threadCpuMs();
                       if (r.rank == 0) sleepMs(kLateMs);
                       steps.ok(sum(r, &value), "one is late");
                       const double used = threadCpuMs() - before;
                       steps.expect(used < kLateMs / 4 * kSlowdown,
                                    "used " + std::to_string(used) + " ms of CPU");
                       return steps.failed();
                     }),
            "");
}

double processCpuMs() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

// How often the threads of that name have gone to sleep.
long sleepsOf(const std::string& name) {
  long sum = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(thread.path() / "comm"), status(thread.path() / "status");
    std::string word;
    if (!(comm >> word) || word != name) continue;
    while (status >> word && word != "voluntary_ctxt_switches:") {
    }
    long count = 0;
    status >> count;
    sum += count;
  }
  return sum;
}

// Over a wire, the thread that makes progress included.
class WaitingOnAWire : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::hasLibfabric()) GTEST_SKIP() << "no libfabric";
    ::setenv("WEFT_OFI_PROVIDER", "tcp;ofi_rxm", 1);
  }
  const World world_{Kind::Processes, 3, "ofi"};
};

TEST_F(WaitingOnAWire, SleepsForOneWhoIsLate) {
  constexpr double kLateMs = 2000;
  EXPECT_EQ(failures(world_,
                     [&](const Rank& r) {
                       Steps steps;
                       float value = 1;
                       steps.ok(sum(r, &value), "together");
                       const double before = processCpuMs();
                       if (r.rank == 0) sleepMs(kLateMs);
                       steps.ok(sum(r, &value), "one is late");
                       const double used = processCpuMs() - before;
                       steps.expect(used < kLateMs / 8 * kSlowdown,
                                    "used " + std::to_string(used) + " ms of CPU");
                       return steps.failed();
                     }),
            "");
}

// It looked every 16 ms for ever.
TEST_F(WaitingOnAWire, IdleThreadsStayAsleep) {
  constexpr double kIdleMs = 1500;
  EXPECT_EQ(failures(world_,
                     [&](const Rank& r) {
                       Steps steps;
                       float value = 1;
                       steps.ok(sum(r, &value), "together");
                       sleepMs(500);
                       const long before = sleepsOf("weft-progress");
                       steps.expect(before > 0, "there is no such thread");
                       sleepMs(kIdleMs);
                       const long woken = sleepsOf("weft-progress") - before;
                       steps.expect(woken < 20, "woken " + std::to_string(woken) + " times");
                       steps.ok(sum(r, &value), "after a while");
                       return steps.failed();
                     }),
            "");
}

// All on one core, which the library cannot know when it starts: who spins is in the others' way.
TEST_P(Waiting, RanksThatAreMovedToOneCoreGoOn) {
  EXPECT_EQ(failures(GetParam(),
                     [&](const Rank& r) {
                       Steps steps;
                       cpu_set_t before, one;
                       sched_getaffinity(0, sizeof(before), &before);
                       CPU_ZERO(&one);
                       for (std::size_t core = 0; CPU_COUNT(&one) == 0; ++core) {
                         if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
                       }
                       sched_setaffinity(0, sizeof(one), &one);
                       for (int i = 0; i < 1000; ++i) {
                         float value = 1;
                         if (!steps.ok(sum(r, &value), "sum")) break;
                         steps.expect(value == static_cast<float>(r.ranks), "wrong");
                       }
                       sched_setaffinity(0, sizeof(before), &before);
                       return steps.failed();
                     }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Worlds, Waiting,
                         ::testing::Values(World{Kind::Threads, 2}, World{Kind::Threads, 8},
                                           World{Kind::Processes, 2}, World{Kind::Processes, 8}),
                         [](const auto& world) {
                           return nameOf(world.param.kind) + std::to_string(world.param.ranks);
                         });

// weftConfig_t.whileWaiting: by the rank that waits, until the other comes, and not by the other.
TEST(WhileWaiting, IsCalledByWhoeverWaits) {
  std::array<std::atomic<int>, 2> times{};
  std::array<weftComm_t, 2> comms{};
  weftGroupStart();
  weftUniqueId id;
  ASSERT_EQ(weftGetUniqueId(&id), weftSuccess);
  for (std::size_t r = 0; r < 2; ++r) {
    weftConfig_t config = WEFT_CONFIG_INITIALIZER;
    config.whileWaiting = [](void* its) { ++*static_cast<std::atomic<int>*>(its); };
    config.whileWaitingContext = &times[r];
    weftCommInitRankConfig(&comms[r], 2, id, static_cast<int>(r), &config);
  }
  ASSERT_EQ(weftGroupEnd(), weftSuccess) << weftGetLastError(nullptr);
  const int before = times[0];
  std::thread late([&] {  // comes when it has seen the calls: how long they take is the machine's
    for (int ms = 0; times[0] - before <= 20 && ms < 20000; ++ms) sleepMs(1);
    EXPECT_EQ(weftBarrier(comms[1], nullptr, nullptr), weftSuccess);
  });
  EXPECT_EQ(weftBarrier(comms[0], nullptr, nullptr), weftSuccess);
  late.join();
  EXPECT_GT(times[0] - before, 20);
  for (const weftComm_t comm : comms) weftCommDestroy(comm);
}

}  // namespace
}  // namespace weft::testing
