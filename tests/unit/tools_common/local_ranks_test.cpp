// SPDX-License-Identifier: Apache-2.0
#include "perf/common/local_ranks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "tests/temporary_folder.h"

namespace weft::tools {
namespace {

int environmentInt(const char* name) { return std::atoi(std::getenv(name)); }

// State and last number of /proc/PID/stat: how the process ended, if it has.
bool hasEndedBy(const std::string& pid, int signal) {
  std::string line;
  std::getline(std::ifstream("/proc/" + pid + "/stat"), line);
  const std::size_t name = line.rfind(')');
  return name != std::string::npos && line[name + 2] == 'Z' &&
         std::stoi(line.substr(line.rfind(' '))) % 128 == signal;
}

// The other child of this one's parent, which may still be starting it.
std::string otherRank() {
  const std::string parent = std::to_string(getppid()), me = std::to_string(getpid());
  for (;;) {
    std::ifstream children("/proc/" + parent + "/task/" + parent + "/children");
    for (std::string pid; children >> pid;)
      if (pid != me) return pid;
    usleep(1000);
  }
}

// Whether the other rank ends by that signal and stays readable, long after its launcher knows.
bool isReadable(int signal) {
  const std::string pid = otherRank();
  while (kill(std::stoi(pid), 0) == 0 && !hasEndedBy(pid, signal)) usleep(1000);
  usleep(300'000);
  return hasEndedBy(pid, signal);
}

// Returns when the other of two ranks is here, too.
void meet(int rank) {
  const std::string folder = std::getenv("FOLDER");
  std::ofstream(folder + "/" + std::to_string(rank)).flush();
  while (access((folder + "/" + std::to_string(1 - rank)).c_str(), F_OK) != 0) usleep(1000);
}

// Waits for the signal that rank 1 has the launcher pass on. No handler: ThreadSanitizer loses some.
void saveWhenInterrupted(int rank) {
  sigset_t terminate;
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  sigprocmask(SIG_BLOCK, &terminate, nullptr);
  meet(rank);
  if (rank == 1) kill(getppid(), SIGTERM);
  int signal = 0;
  sigwait(&terminate, &signal);
  _exit(75);
}

// What a rank does; it runs only in the processes that the tests below start.
TEST(LocalRank, DISABLED_Body) {
  const std::string task = std::getenv("TASK");
  const int rank = environmentInt("WEFT_RANK");
  if (task == "report") {
    std::ofstream(std::string(std::getenv("FOLDER")) + "/" + std::to_string(rank))
        << std::getenv("WEFT_SIZE") << ' ' << std::getenv("WEFT_LOCAL_RANK") << ' '
        << std::getenv("WEFT_LOCAL_SIZE") << ' ' << std::getenv("WEFT_ROOT") << ' '
        << std::getenv("WEFT_SECRET");
    _exit(0);
  }
  if (task == "fail" && rank == 1) _exit(3);
  if (task == "crash" && rank == 1) raise(SIGKILL);
  if (task == "lost") {  // rank 0 notices the loss before rank 1 has quite ended
    if (rank == 0) _exit(75);
    usleep(200'000);
    _exit(65);
  }
  if (task == "look" && rank == 1) {
    ::signal(SIGSEGV, SIG_DFL);  // sanitizers catch it
    raise(SIGSEGV);
  }
  if (task == "look") {
    std::fputs(isReadable(SIGSEGV) ? "rank 0 can read it\n" : "rank 0 cannot\n", stderr);
    _exit(0);
  }
  if (task == "save") saveWhenInterrupted(rank);
  if (task == "interrupt" && rank == 1) kill(getppid(), SIGTERM);
  for (;;) pause();
}

int run(const std::string& task, int ranks, const std::string& folder = "") {
  char program[] = "test", filter[] = "--gtest_filter=LocalRank.*", flag[] = "--ranks", n[] = "2",
       all[] = "--gtest_also_run_disabled_tests";
  char* argv[] = {program, flag, n, filter, all, nullptr};
  const EnvVar extra[] = {{"TASK", task}, {"FOLDER", folder}};
  return runLocalRanks(ranks, argv, extra);
}

struct Identity {
  int size = 0, localRank = 0, localSize = 0;
  std::string root, secret;
};

TEST(LocalRanks, EachRankKnowsWhoItIs) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(run("report", 3, folder.path().c_str()), 0);
  std::set<std::string> roots, secrets;
  for (int rank = 0; rank < 3; ++rank) {
    Identity me;
    std::ifstream(folder / std::to_string(rank)) >> me.size >> me.localRank >> me.localSize >>
        me.root >> me.secret;
    EXPECT_EQ(me.size, 3);
    EXPECT_EQ(me.localRank, rank);
    EXPECT_EQ(me.localSize, 3);
    EXPECT_EQ(me.root.substr(0, 10), "127.0.0.1:");
    EXPECT_EQ(me.secret.size(), 64u);
    roots.insert(me.root);
    secrets.insert(me.secret);
  }
  EXPECT_EQ(roots.size(), 1u);
  EXPECT_EQ(secrets.size(), 1u);
}

TEST(ForkedLocalRanks, KnowWhoTheyAreAndWhatWasLoaded) {
  const test::TemporaryFolder folder;
  const std::string loaded = "loaded once";
  char program[] = "test", flag[] = "--ranks", n[] = "3", other[] = "--other";
  char* argv[] = {program, flag, n, other, nullptr};
  const auto rank = [&](int count, char** words) {
    std::ofstream(folder / std::getenv("WEFT_RANK"))
        << count << words[1] << ' ' << std::getenv("WEFT_SIZE") << ' ' << loaded << '\n';
    return 0;
  };
  ASSERT_EQ(forkLocalRanks(3, argv, rank), 0);
  for (const char* file : {"0", "1", "2"}) {
    std::string line;
    std::getline(std::ifstream(folder / file) >> std::ws, line);
    EXPECT_EQ(line, "2--other 3 loaded once");
  }
  EXPECT_EQ(std::getenv("WEFT_RANK"), nullptr) << "it is the ranks' alone";
}

TEST(ForkedLocalRanks, EndWithWhatTheirFunctionReturns) {
  char program[] = "test";
  char* argv[] = {program, nullptr};
  const auto rank = [](int, char**) { return environmentInt("WEFT_RANK") == 1 ? 65 : 75; };
  testing::internal::CaptureStderr();
  EXPECT_EQ(forkLocalRanks(3, argv, rank), 65);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("rank 1 "), std::string::npos);
}

TEST(LocalRanks, TheFailureOfOneEndsAll) {
  const auto start = std::chrono::steady_clock::now();
  testing::internal::CaptureStderr();
  EXPECT_EQ(run("fail", 3), 3);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("rank 1 "), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
}

TEST(LocalRanks, AKilledRankIsNamedWithItsSignal) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run("crash", 2), 128 + SIGKILL);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("rank 1 "), std::string::npos) << text;
  EXPECT_NE(text.find("signal 9"), std::string::npos) << text;
}

TEST(LocalRanks, AnyDeadlySignalIsNamedAndCanBeReadByTheOthers) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run("look", 2), 128 + SIGSEGV);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("rank 1 "), std::string::npos) << text;
  EXPECT_NE(text.find("signal 11"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 0 can read it"), std::string::npos) << text;
}

TEST(LocalRanks, WhoOnlyLostAPeerIsNotTheCulprit) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run("lost", 2), 65);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("rank 1 "), std::string::npos);
}

TEST(LocalRanks, PassesSigtermOn) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run("interrupt", 2), 128 + SIGTERM);
  testing::internal::GetCapturedStderr();
}

TEST(LocalRanks, WhatAllRanksMakeOfSigtermIsTheOutcome) {
  const test::TemporaryFolder folder;
  testing::internal::CaptureStderr();
  EXPECT_EQ(run("save", 2, folder.path().c_str()), 75);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace weft::tools
