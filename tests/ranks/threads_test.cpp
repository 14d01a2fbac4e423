// SPDX-License-Identifier: Apache-2.0
// Several threads a rank: every call delivers, to the bit, what it does with one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <thread>

#include "../temporary_folder.h"
#include "checked_call.h"
#include "world.h"

namespace weft::testing {
namespace {

using ParallelFor = void (*)(void* context, int n, void (*body)(void* arg, int i), void* arg);

// Where whatever may be shared is.
[[maybe_unused]] const int slowly = ::setenv("WEFT_TUNE_FILE", WEFT_SLOW_COPIES, 1);

// Pools: all pieces on the caller's thread, the last first; and each on a thread of its own.
void backwards(void* jobs, int n, void (*body)(void* arg, int i), void* arg) {
  static_cast<std::atomic<int>*>(jobs)->fetch_add(1);
  for (int i = n; i-- > 0;) body(arg, i);
}
void onNewThreads(void* jobs, int n, void (*body)(void* arg, int i), void* arg) {
  static_cast<std::atomic<int>*>(jobs)->fetch_add(1);
  std::vector<std::thread> threads;
  for (int i = 1; i < n; ++i) threads.emplace_back(body, arg, i);
  body(arg, 0);
  for (std::thread& thread : threads) thread.join();
}

// A communicator of the same ranks with so many threads each; `shares`: a pool must get jobs.
std::string withThreads(const Rank& r, int threads, ParallelFor pool, std::atomic<int>* jobs,
                        bool shares, const std::function<std::string(const Rank&)>& body) {
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  config.threads = threads;
  config.parallelFor = pool;
  config.parallelForContext = jobs;
  Rank other = r;
  if (const auto made = weftCommSplit(r.comm, 0, r.rank, &other.comm, &config); made != weftSuccess)
    return outcome(made, r.comm);
  if (pool != nullptr) *jobs = 0;
  std::string failed = body(other);
  if (failed.empty() && pool != nullptr && shares && *jobs == 0)
    failed = "the pool had nothing to do";
  const weftResult_t ended = weftCommDestroy(other.comm);
  return failed.empty() ? outcome(ended, nullptr) : failed;
}

std::string runCases(const Rank& r, int cases, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < cases; ++i) {
    Case c = randomCase(random, r.ranks, i % 8 == 7 ? std::size_t{4 / kSlowdown} << 20 : 64 << 10);
    c.algorithm.clear();
    CheckedCall checked(c, r);
    const weftResult_t result = checked.make();
    const std::string wrong = result == weftSuccess ? checked.check() : outcome(result, r.comm);
    if (!wrong.empty()) return describe(c) + ": " + wrong;
  }
  return "";
}

class Threads : public ::testing::TestWithParam<World> {};

TEST_P(Threads, DeliverWhatADirectComputationDoes) {
  const std::uint64_t seed = std::random_device()();
  const std::string failed = failures(GetParam(), [&](const Rank& r) -> std::string {
    std::atomic<int> jobs{0};
    const auto body = [&](const Rank& other) { return runCases(other, 60 / kSlowdown, seed); };
    for (const int threads : {2, 3, 8})
      if (const std::string one = withThreads(r, threads, nullptr, nullptr, false, body);
          !one.empty())
        return std::to_string(threads) + " threads, " + one;
    for (const ParallelFor pool : {backwards, onNewThreads})
      if (const std::string one = withThreads(r, 3, pool, &jobs, false, body); !one.empty())
        return "a pool, " + one;
    return "";
  });
  EXPECT_EQ(failed, "") << "seed " << seed;
}

// Sums of arbitrary floats: the bits do not depend on how many threads add them.
std::string sumOf(const Rank& r, weftDataType_t type, std::size_t count, bool shared,
                  std::vector<std::byte>* result) {
  const std::size_t bytes = count * sizeOf(type);
  std::mt19937_64 random(static_cast<std::uint64_t>(r.rank) + 99);
  Guarded in(bytes, 5, shared), out(bytes, 3, shared);
  for (std::size_t i = 0; i < count; ++i)
    store(in.data() + i * sizeOf(type), type,
          static_cast<double>(random() % 200) * (random() % 2 ? 1e-3 : -1.7));
  const weftResult_t ended =
      weftAllReduce(in.data(), out.data(), count, type, weftSum, r.comm, nullptr, nullptr);
  result->assign(out.data(), out.data() + bytes);
  return ended == weftSuccess && !out.isIntact() ? "guard bytes were written"
                                                 : outcome(ended, r.comm);
}

std::string compareSums(const Rank& r, weftDataType_t type, std::size_t count, bool shared) {
  std::vector<std::byte> alone;
  if (const std::string failed = sumOf(r, type, count, shared, &alone); !failed.empty())
    return failed;
  const auto compare = [&](const Rank& other) -> std::string {
    std::vector<std::byte> together;
    const std::string failed = sumOf(other, type, count, shared, &together);
    return failed.empty() && together != alone ? "other bits" : failed;
  };
  std::atomic<int> jobs{0};
  std::string failed;
  for (const int threads : kSanitized ? std::vector{3} : std::vector{2, 3, 8})
    for (const ParallelFor pool : {ParallelFor{nullptr}, ParallelFor{backwards}})
      if (failed.empty()) failed = withThreads(r, threads, pool, &jobs, shared, compare);
  return failed;
}

TEST_P(Threads, GiveTheSameBits) {
  const std::string failed = failures(GetParam(), [&](const Rank& r) -> std::string {
    for (const weftDataType_t type : {weftFloat, weftBfloat16, weftFloat16, weftDouble})
      for (const bool shared : {false, true})
        if (const std::string one = compareSums(r, type, 100003, shared); !one.empty())
          return std::to_string(type) + ": " + one;
    return "";
  });
  EXPECT_EQ(failed, "");
}

// Each rank to the next, several messages at once.
std::string passOn(const Rank& r, bool shared) {
  constexpr std::size_t kMessages = 3, kBytes = (std::size_t{kSanitized ? 1 : 2} << 20) + 77;
  std::vector<std::unique_ptr<Guarded>> in, out;
  const int next = (r.rank + 1) % r.ranks, last = (r.rank + r.ranks - 1) % r.ranks;
  weftGroupStart();
  for (std::size_t m = 0; m < kMessages; ++m) {
    in.push_back(std::make_unique<Guarded>(kBytes, m, shared));
    out.push_back(std::make_unique<Guarded>(kBytes, 5 * m, shared));
    std::mt19937 random(static_cast<unsigned>(r.rank) * 10 + static_cast<unsigned>(m));
    std::generate_n(in[m]->data(), kBytes, [&] { return static_cast<std::byte>(random()); });
    weftSend(in[m]->data(), kBytes, weftUint8, next, r.comm, nullptr);
    weftRecv(out[m]->data(), kBytes, weftUint8, last, r.comm, nullptr);
  }
  if (const auto ended = weftGroupEnd(); ended != weftSuccess) return outcome(ended, r.comm);
  for (std::size_t m = 0; m < kMessages; ++m) {
    std::mt19937 random(static_cast<unsigned>(last) * 10 + static_cast<unsigned>(m));
    const bool same = std::all_of(out[m]->data(), out[m]->data() + kBytes, [&](std::byte b) {
      return b == static_cast<std::byte>(random());
    });
    if (!same || !out[m]->isIntact()) return "message " + std::to_string(m) + " is another one";
  }
  return "";
}

// Those that are read where they lie, by loads or by CMA.
TEST_P(Threads, ShareLongMessages) {
  const std::string failed = failures(GetParam(), [&](const Rank& r) {
    std::string one;
    for (const bool shared : {true, false})
      for (const ParallelFor pool : {ParallelFor{nullptr}, ParallelFor{onNewThreads}}) {
        std::atomic<int> jobs{0};
        const auto pass = [&](const Rank& other) { return passOn(other, shared); };
        if (one.empty()) one = withThreads(r, 3, pool, &jobs, shared, pass);
      }
    return one;
  });
  EXPECT_EQ(failed, "");
}

std::string nameOfWorld(const ::testing::TestParamInfo<World>& p) {
  return nameOf(p.param.kind) + std::to_string(p.param.ranks);
}
INSTANTIATE_TEST_SUITE_P(Worlds, Threads,
                         ::testing::Values(World{Kind::Threads, 2}, World{Kind::Threads, 4},
                                           World{Kind::Processes, 2}, World{Kind::Processes, 4}),
                         nameOfWorld);

// A communicator of one rank.
struct Alone {
  explicit Alone(weftConfig_t config) {
    result = weftCommInitAllConfig(&comm, 1, nullptr, &config);
  }
  ~Alone() { weftCommDestroy(comm); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  weftComm_t comm = nullptr;
  weftResult_t result = weftSuccess;
};

weftConfig_t configWith(int threads) {
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  config.threads = threads;
  return config;
}

TEST(ThreadsConfig, MustBeANumberThatARankMayHave) {
  for (const int threads : {0, -1, 1025}) {
    EXPECT_EQ(Alone(configWith(threads)).result, weftInvalidArgument);
    EXPECT_EQ(weftGetLastError(nullptr),
              "threads is " + std::to_string(threads) + "; fix: 1 to 1024");
  }
  for (const char* value : {"0", "two", "1025"}) {
    ::setenv("WEFT_THREADS", value, 1);
    EXPECT_EQ(Alone(WEFT_CONFIG_INITIALIZER).result, weftInvalidArgument);
    EXPECT_EQ(weftGetLastError(nullptr), "WEFT_THREADS=" + std::string(value) +
                                             " is not a number from 1 to 1024. fix: correct or "
                                             "unset WEFT_THREADS");
  }
  ::unsetenv("WEFT_THREADS");
}

// What this process writes to its log while `body` runs, which ends it.
std::string logOf(const std::function<std::string()>& body) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "log";
  const std::vector<std::string> texts = forkRanks(1, [&](int) -> std::string {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return ::dup2(fd, STDERR_FILENO) < 0 ? "no log" : body();
  });
  EXPECT_EQ(failuresIn(texts), "");
  std::ostringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

TEST(ThreadsConfig, MoreThanCoresAreMadeWithOneWarning) {
  const std::string log = logOf([]() -> std::string {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
    if (::sched_setaffinity(0, sizeof(one), &one) != 0) return "no affinity";
    const Alone first(configWith(2)), second(configWith(2));
    return first.result == weftSuccess && second.result == weftSuccess ? "" : "not made";
  });
  const std::string warning =
      "WEFT WARN a rank of this process has 2 threads (WEFT_THREADS, weftConfig_t.threads) and 1 "
      "core(s) to run on: no more work at a time; fix: fewer threads, or a wider affinity mask "
      "when "
      "the communicator is made\n";
  EXPECT_NE(log.find(warning), std::string::npos) << log;
  EXPECT_EQ(log.find("WEFT WARN"), log.rfind("WEFT WARN")) << log;
}

// A child has none of the helpers, and ends all the same; so does a process with helpers asleep.
TEST(ThreadsConfig, ProcessesForkAndExitWithATeam) {
  const std::vector<std::string> texts = forkRanks(1, [](int) -> std::string {
    static Alone alone(configWith(4));
    std::vector<float> data(1 << 20, 1);
    if (weftAllReduce(data.data(), data.data(), data.size(), weftFloat, weftSum, alone.comm,
                      nullptr, nullptr) != weftSuccess)
      return "the call failed";
    const pid_t child = forkAtRest();
    if (child == 0) {
      weftCommDestroy(alone.comm);
      std::exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : "the child did not end well";
  });
  EXPECT_EQ(failuresIn(texts), "");
}

}  // namespace
}  // namespace weft::testing
