// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "scoped_env.h"

namespace weft::inline base {
namespace {

// A log into a pipe that is large enough for what a test writes.
class PipeLog {
 public:
  explicit PipeLog(Level level) : ends_(open()), log_(level, ends_.write) {}
  ~PipeLog() { close(ends_.read); }
  const Log& log() const { return log_; }

  std::vector<std::string> lines() {
    close(ends_.write);
    std::string all;
    char buffer[4096];
    for (ssize_t n; (n = read(ends_.read, buffer, sizeof buffer)) > 0;) {
      all.append(buffer, static_cast<std::size_t>(n));
    }
    std::vector<std::string> result;
    std::istringstream stream(all);
    for (std::string line; std::getline(stream, line);) result.push_back(line);
    return result;
  }

 private:
  struct Ends {
    int read, write;
  };
  static Ends open() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) std::abort();
    return {fds[0], fds[1]};
  }
  Ends ends_;
  Log log_;
};

TEST(Log, OneLineWithHostPidRankLevel) {
  PipeLog pipe(Level::Info);
  pipe.log().write(Level::Warn, "first\nsecond");
  {
    const SpeaksFor outer(7);
    pipe.log().write(Level::Info, "with rank");
    { const SpeaksFor inner(8); }
    pipe.log().write(Level::Info, "again");
  }
  pipe.log().write(Level::Info, "without");
  const std::vector<std::string> lines = pipe.lines();
  ASSERT_EQ(lines.size(), 4u);
  const std::string prefix = text(hostName(), ':', getpid());
  EXPECT_EQ(lines[0], prefix + " [-] WEFT WARN first second");
  EXPECT_EQ(lines[1], prefix + " [7] WEFT INFO with rank");
  EXPECT_EQ(lines[2], prefix + " [7] WEFT INFO again");
  EXPECT_EQ(lines[3], prefix + " [-] WEFT INFO without");
}

TEST(Log, EnabledUpToItsLevel) {
  const Log log(Level::Info, -1);
  EXPECT_TRUE(log.enabled(Level::Error));
  EXPECT_TRUE(log.enabled(Level::Info));
  EXPECT_FALSE(log.enabled(Level::Debug));
}

TEST(Log, LinesOfThreadsDoNotMix) {
  PipeLog pipe(Level::Info);
  constexpr std::uint32_t kThreads = 4, kLines = 50;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < kThreads; ++rank) {
    threads.emplace_back([&, rank] {
      const SpeaksFor speaker(rank);
      for (std::uint32_t i = 0; i < kLines; ++i) pipe.log().write(Level::Info, text("line ", i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> lines = pipe.lines();
  EXPECT_EQ(lines.size(), kThreads * kLines);
  // Each line comes out whole, exactly once.
  std::set<std::string> expected;
  for (std::uint32_t rank = 0; rank < kThreads; ++rank) {
    for (std::uint32_t i = 0; i < kLines; ++i) {
      expected.insert(text(hostName(), ':', getpid(), " [", rank, "] WEFT INFO line ", i));
    }
  }
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()), expected);
}

TEST(Log, LevelsByNcclNamesAndOurs) {
  const std::pair<const char*, Level> cases[] = {{"none", Level::Error},   {"Error", Level::Error},
                                                 {"VERSION", Level::Warn}, {"warn", Level::Warn},
                                                 {"INFO", Level::Info},    {"debug", Level::Debug},
                                                 {"TRACE", Level::Trace}};
  for (const auto& [name, expected] : cases) {
    Level level{};
    ASSERT_TRUE(parseLevel(name, &level)) << name;
    EXPECT_EQ(level, expected) << name;
  }
  Level level{};
  EXPECT_FALSE(parseLevel("WAR", &level));
  EXPECT_FALSE(parseLevel("WARNING", &level));
  EXPECT_FALSE(parseLevel("", &level));
}

TEST(Log, FileNameExpansion) {
  EXPECT_EQ(expandLogFile("/a/%h.%p.log", "nodeA", 12), "/a/nodeA.12.log");
  EXPECT_EQ(expandLogFile("100%%p%x%", "h", 1), "100%p%x%");
  EXPECT_EQ(expandLogFile("", "h", 1), "");
}

// The process's log is made once, so each configuration is looked at in a child.
std::string childLog(const char* level, const char* file) {
  const std::string path = testing::TempDir() + text("weft_log_", getpid(), ".txt");
  std::filesystem::remove(path);
  const pid_t child = fork();
  if (child == 0) {
    setenv("WEFT_DEBUG", level, 1);
    setenv("WEFT_DEBUG_FILE", file ? file : path.c_str(), 1);
    setenv("WEFT_DEBUGG", "x", 1);
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, STDERR_FILENO);
    logWarn("a warning");
    logInfo("an info ", 42);
    logAt(Level::Trace, "a trace");
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  std::ifstream stream(path);
  std::string content((std::istreambuf_iterator<char>(stream)), {});
  std::filesystem::remove(path);
  return content;
}

TEST(Log, ProcessLogFollowsTheEnvironment) {
  const std::string content = childLog("INFO", nullptr);
  EXPECT_NE(content.find("WEFT WARN a warning\n"), std::string::npos) << content;
  EXPECT_NE(content.find("WEFT INFO an info 42\n"), std::string::npos);
  EXPECT_EQ(content.find("a trace"), std::string::npos);
  EXPECT_NE(content.find("did you mean WEFT_DEBUG?"), std::string::npos);
}

TEST(Log, BadSettingsAreSaidAndDoNotSilence) {
  const std::string content = childLog("LOUD", "/nonexistent/folder/log");
  EXPECT_NE(content.find("WEFT_DEBUG=LOUD is not one of"), std::string::npos) << content;
  EXPECT_NE(content.find("cannot open /nonexistent/folder/log"), std::string::npos);
  EXPECT_NE(content.find("WARN a warning"), std::string::npos);
  EXPECT_EQ(content.find("an info"), std::string::npos);
}

}  // namespace
}  // namespace weft::inline base
