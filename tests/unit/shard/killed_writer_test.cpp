// SPDX-License-Identifier: Apache-2.0
// Whenever a writer dies, the last checkpoint is whole.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <thread>

#include "checkpoints.h"

extern char** environ;

namespace weft::test {
using namespace shard;
namespace {

constexpr const char* kFolder = "CHECKPOINTS_OF_TEST";
constexpr int kSteps = 1000;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRounds = 3;
#else
constexpr int kRounds = 20;
#endif

Training fourRanks(const std::string& dir) {
  Training run;
  run.ranks = run.microBatches = 4;
  run.config = fp32Config({1, 2, 4});
  run.config.reproducible = true;
  run.steps = kSteps;
  run.resume = [=](ShardedOptimizer& shard) -> Status {
    return loadCheckpoint(shard, dir, nullptr);
  };
  return run;
}

// What is killed: goes on from the last checkpoint, and saves after each step.
TEST(KilledWriter, DISABLED_Writer) {
  const char* const dir = std::getenv(kFolder);
  if (dir == nullptr) GTEST_SKIP() << "runs in a process of its own";
  Training run = fourRanks(dir);
  run.afterStep = [=](ShardedOptimizer& shard, int) -> Status {
    if (shard.mesh().rank() == 0 && ::write(STDOUT_FILENO, ".", 1) != 1) ::_exit(1);
    return saveCheckpoint(shard, dir, "");
  };
  trainAll(run);
}

// A process of this test, which writes a dot before each save.
class Writer {
 public:
  explicit Writer(const std::string& dir) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::setenv(kFolder, dir.c_str(), 1);
    std::string name = "unit_shard", filter = "--gtest_filter=KilledWriter.DISABLED_Writer",
                all = "--gtest_also_run_disabled_tests", quiet = "--gtest_brief=1";
    char* const args[] = {name.data(), filter.data(), all.data(), quiet.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, args, environ), 0);
    ::unsetenv(kFolder);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    dots_ = ends[0];
  }
  ~Writer() { ::close(dots_); }

  // Until it has begun a save.
  bool awaitDot() const {
    pollfd ready{dots_, POLLIN, 0};
    char dot = 0;
    while (::poll(&ready, 1, 60000) == 1 && ::read(dots_, &dot, 1) == 1)
      if (dot == '.') return true;
    return false;
  }
  void kill() const {
    int status = 0;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "ended before it was killed, with " << status;
  }

 private:
  pid_t pid_ = 0;
  int dots_ = -1;
};

// Of the last checkpoint, which must be whole, and is loaded by others than have saved it.
int stepsOfLatest(const std::string& dir) {
  int steps = 0;
  Training run = fourRanks(dir);
  run.ranks = 2;
  run.config.degrees = {2, 2, 2};
  run.steps = 0;
  run.resume = [&](ShardedOptimizer& shard) -> Status {
    WEFT_TRY(loadCheckpoint(shard, dir, nullptr));
    if (shard.mesh().rank() == 0) steps = static_cast<int>(shard.state().steps);
    return {};
  };
  trainAll(run);
  return steps;
}

// From one save of a writer to the next, on this disk.
std::chrono::duration<double> timeOfASave(const std::string& dir) {
  const Writer writer(dir);
  EXPECT_TRUE(writer.awaitDot());
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(writer.awaitDot());
  const auto took = std::chrono::steady_clock::now() - begun;
  writer.kill();
  return took;
}

TEST(KilledWriter, NeverCostsTheLastGoodCheckpoint) {
  const TemporaryFolder dir;
  Training first = fourRanks(dir.path());
  first.resume = nullptr;
  trainAll(savingAt(first, 1, dir.path()));
  const auto save = timeOfASave(dir.path());
  std::mt19937 random(7);
  std::uniform_real_distribution<double> saves(0, 3);
  int last = 2;
  for (int round = 0; round < kRounds; ++round) {
    const Writer writer(dir.path());
    ASSERT_TRUE(writer.awaitDot());
    std::this_thread::sleep_for(saves(random) * save);
    writer.kill();
    const int steps = stepsOfLatest(dir.path());
    EXPECT_GE(steps, last);
    last = steps;
    EXPECT_LE(foldersIn(dir.path()).size(), 3u);
  }
}

}  // namespace
}  // namespace weft::test
