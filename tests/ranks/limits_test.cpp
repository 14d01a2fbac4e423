// SPDX-License-Identifier: Apache-2.0
// Small limits of the system: weft works within them, or says what is too small and how to raise
// it. Never a crash, never a wait.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>

#include "traffic.h"
#include "world.h"

namespace weft::testing {
namespace {

// Makes this process poorer; "" or why it cannot.
using Impoverish = std::function<std::string()>;

Impoverish lowered(__rlimit_resource what, rlim_t limit) {
  return [=]() -> std::string {
    const rlimit both = {limit, limit};
    return ::setrlimit(what, &both) == 0 ? "" : std::strerror(errno);
  };
}

std::string everyCollective(const Rank& rank) {
  Traffic traffic(1);
  for (const std::size_t count : {1u, 5000u, 300000u}) {
    for (int kind = 0; kind < Traffic::kKinds; ++kind) {
      const weftResult_t made = traffic.call(kind, count, rank);
      if (made != weftSuccess) return outcome(made, rank.comm);
    }
  }
  return "";
}

// Creates a communicator in a poor process and uses it.
std::string live(const IdCourier& courier, int rank, int ranks) {
  weftUniqueId id;
  if (const std::string failed = courier.exchange(rank, &id); !failed.empty()) return failed;
  weftComm_t comm = nullptr;
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  config.initTimeoutMs = 3000 * kSlowdown;
  config.timeoutMs = 20000;
  const weftResult_t made = weftCommInitRankConfig(&comm, ranks, id, rank, &config);
  if (made != weftSuccess) return outcome(made, nullptr);
  std::string text = everyCollective({rank, ranks, comm});
  weftCommDestroy(comm);
  return text;
}

// The courier's pipes must not stay open here, or nobody would see that rank 0 has no id.
std::vector<std::string> liveOn(const Impoverish& impoverish, int ranks) {
  Processes processes(ranks,
                      [&impoverish, ranks, courier = IdCourier(ranks)](int rank) -> std::string {
                        const std::string failed = impoverish();
                        return failed.empty() ? live(courier, rank, ranks) : failed;
                      });
  return processes.join();
}

// Nothing of weft's is locked, and nothing lies in /dev/shm: these must simply work.
TEST(Limits, NoLockedMemoryIsNeeded) {
  EXPECT_EQ(failuresIn(liveOn(lowered(RLIMIT_MEMLOCK, 0), 3)), "");
}

std::string smallDevShm() {
  if (::unshare(CLONE_NEWNS) != 0) return std::strerror(errno);
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return std::strerror(errno);
  const bool mounted = ::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") == 0;
  return mounted ? "" : std::strerror(errno);
}

TEST(Limits, SmallDevShmIsEnough) {
  if (const auto probe = forkRanks(1, [](int) { return smallDevShm(); }); !probe[0].empty())
    GTEST_SKIP() << "cannot mount a small /dev/shm: " << probe[0];
  EXPECT_EQ(failuresIn(liveOn(smallDevShm, 4)), "");
}

// Success, a typed error with a fix, or what a rank hears whose mate could not go on.
bool isAnswer(const std::string& text) {
  for (const char* own :
       {"system error: ", "out of memory: ", "timeout: ", "invalid argument: stale unique id"}) {
    if (text.rfind(own, 0) == 0) return text.find("fix: ") != std::string::npos;
  }
  return text.empty() || text == "no id" || text.rfind("remote error: ", 0) == 0;
}

// Of a rank that has too few descriptors itself, only this is one: what it lacks, by name.
bool namesOpenFiles(const std::string& text) {
  return text.rfind("system error: ", 0) == 0 && text.find("open files") != std::string::npos &&
         text.find("fix: ") != std::string::npos;
}

// From enough to hardly any: different steps of creation are the one that fails.
TEST(Limits, FewFileDescriptorsWorkOrAreNamed) {
  if (kSanitized) GTEST_SKIP() << "sanitizers open pipes of their own to check addresses";
  int worked = 0, named = 0;
  for (rlim_t limit = 200; limit >= 12; limit = limit * 4 / 5) {
    const std::vector<std::string> texts = liveOn(lowered(RLIMIT_NOFILE, limit), 2);
    for (const std::string& text : texts) {
      EXPECT_TRUE(isAnswer(text)) << limit << " fds: " << text;
      ++(text.empty() ? worked : named);
    }
  }
  EXPECT_GT(worked, 0);
  EXPECT_GT(named, 0);
  std::printf("  %d ranks worked, %d said why not\n", worked, named);
}

// As a rank whose mates are rich: whichever step comes to lack a descriptor, it says so at once.
// Its mates are told, unless it could not even connect: then they miss it at the deadline of
// creation.
std::string livePoorly(const IdCourier& courier, rlim_t limit) {
  if (const std::string failed = lowered(RLIMIT_NOFILE, limit)(); !failed.empty()) return failed;
  const double start = nowMs();
  const std::string text = live(courier, 1, 3);
  return nowMs() - start < 2000 ? text : "late: " + text;
}

TEST(Limits, OnePoorRankIsToldToAll) {
  if (kSanitized) GTEST_SKIP() << "sanitizers open pipes of their own to check addresses";
  for (const rlim_t limit : {5u, 9u, 10u, 11u, 12u, 13u, 14u, 16u, 20u}) {
    Processes processes(3, [limit, courier = IdCourier(3)](int rank) {
      return rank == 1 ? livePoorly(courier, limit) : live(courier, rank, 3);
    });
    const std::vector<std::string> texts = processes.join();
    EXPECT_TRUE(namesOpenFiles(texts[1])) << limit << " fds: " << texts[1];
    for (const std::string& text : texts)
      EXPECT_TRUE(isAnswer(text) && !text.empty()) << limit << " fds: " << text;
  }
}

// Without address space, threads of one process.
TEST(Limits, LittleAddressSpaceIsNamed) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need much address space";
  const auto texts = forkRanks(1, [](int) -> std::string {
    const std::string failed = lowered(RLIMIT_AS, rlim_t{64} << 20)();
    if (!failed.empty()) return failed;
    weftComm_t comms[16] = {};
    const weftResult_t made = weftCommInitAll(comms, 16, nullptr);
    for (const weftComm_t comm : comms) weftCommDestroy(comm);
    return outcome(made, nullptr);
  });
  EXPECT_TRUE(isAnswer(texts[0])) << texts[0];
  std::printf("  16 ranks in 64 MiB: %s\n", texts[0].empty() ? "work" : texts[0].c_str());
}

}  // namespace
}  // namespace weft::testing
