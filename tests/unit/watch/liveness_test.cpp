// SPDX-License-Identifier: Apache-2.0
#include "watch/liveness.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>

#include "base/fd.h"
#include "base/text.h"
#include "tests/unit/still_transport.h"

namespace weft::watch {
namespace {

using Clock = Liveness::Clock;
using std::chrono::milliseconds;

// A process to watch, and to do harm to. Tells through a pipe that it runs; does what it is given
// before or after that.
class Victim {
 public:
  explicit Victim(
      const std::function<void()>& before = [] {}, const std::function<void()>& after = [] {}) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    const Fd out(ends[0]);
    pid_ = ::fork();
    if (pid_ == 0) {
      before();
      (void)!::write(ends[1], "x", 1);
      after();
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char byte = 0;
    EXPECT_EQ(::read(out.get(), &byte, 1), 1);
    pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    stat_ = Fd(::open(text("/proc/", pid_, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  ~Victim() {
    if (pid_ < 0) return;
    kill(SIGKILL);
    reap();
  }
  void kill(int signal) const { ::kill(pid_, signal); }
  void reap() {
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }
  int stat() const { return stat_.get(); }

 private:
  pid_t pid_ = -1;
  Fd pidfd_;
  Fd stat_;
};

// Only the descriptors of a transport are asked for here.
class Descriptors final : public test::StillTransport {
 public:
  std::vector<std::pair<int, int>> fds;  // pidfd and stat of each peer
  int deathFd(std::uint32_t peer) const override { return fds[peer].first; }
  int statFd(std::uint32_t peer) const override { return fds[peer].second; }
};

struct Watched {
  Descriptors descriptors;
  std::vector<PeerName> names;
  std::vector<std::string> warnings;

  explicit Watched(std::initializer_list<const Victim*> victims) {
    add(-1, -1, ::getpid());  // oneself, rank 0
    for (const Victim* victim : victims) add(victim->pidfd(), victim->stat(), victim->pid());
  }
  void add(int pidfd, int stat, int pid) {
    names.push_back({static_cast<int>(names.size()), "b", pid});
    descriptors.fds.emplace_back(pidfd, stat);
  }
  Liveness liveness() {
    return Liveness(descriptors, names,
                    [this](const std::string& line) { warnings.push_back(line); });
  }
};

// Checks every millisecond until there is an error.
Status checkUntilDead(Liveness& liveness, milliseconds most) {
  Status status = liveness.check();
  for (const auto until = Clock::now() + most; status.ok() && Clock::now() < until;) {
    std::this_thread::sleep_for(milliseconds(1));
    status = liveness.check();
  }
  return status;
}

// Checks until so many warnings have been written, and nobody is dead.
bool checkUntilWarned(Liveness& liveness, const Watched& watched, std::size_t warnings) {
  for (const auto until = Clock::now() + milliseconds(20000);
       watched.warnings.size() < warnings && Clock::now() < until;)
    if (!checkUntilDead(liveness, milliseconds(10)).ok()) return false;
  return watched.warnings.size() == warnings;
}

void expectText(const Status& status, std::initializer_list<std::string> parts) {
  EXPECT_EQ(status.code(), Code::RemoteError) << status.text();
  for (const std::string& part : parts)
    EXPECT_NE(status.text().find(part), std::string::npos)
        << part << " is not in " << status.text();
}

TEST(Liveness, NobodyToWatch) {
  Watched watched({});
  Liveness liveness = watched.liveness();
  EXPECT_TRUE(liveness.check().ok());
}

// A thousand peers are looked at by turns; who has ended is looked at until it matters.
TEST(Liveness, FindsTheEndOfOneOfAThousandPeers) {
  const Victim alive, victim;
  Watched watched({});
  for (int peer = 1; peer < 1000; ++peer) {
    const Victim& who = peer == 777 ? victim : alive;
    watched.add(who.pidfd(), who.stat(), who.pid());
  }
  Liveness liveness = watched.liveness();
  victim.kill(SIGKILL);
  while (!liveness.isStill(777)) std::this_thread::sleep_for(milliseconds(1));
  int asked = 0;
  const auto matters = [&](std::uint32_t peer) { return peer == 777 && ++asked == 3; };
  int checks = 0;
  Status status;
  while (status.ok() && ++checks < 100) status = liveness.check(matters);
  expectText(status, {"rank 777 ", "was killed by SIGKILL"});
  EXPECT_EQ(checks, 777 / static_cast<int>(Liveness::kAtOnce) + 3) << "its turn, and the next two";
}

TEST(Liveness, NamesWhoWasKilledAndHow) {
  const Victim one;
  const Victim two;
  Watched watched({&one, &two});
  Liveness liveness = watched.liveness();
  ASSERT_TRUE(liveness.check().ok());
  const int pid = two.pid();
  two.kill(SIGKILL);
  const Status status = checkUntilDead(liveness, milliseconds(5000));
  expectText(status,
             {text("rank 2 (host b, pid ", pid, ")"), "was killed by SIGKILL", "ms ago", "fix:"});
  one.kill(SIGKILL);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(liveness.check().text(), status.text()) << "the first answer stays";
}

TEST(Liveness, KnowsTheEndOfAReapedProcess) {
  Victim victim;
  Watched watched({&victim});
  Liveness liveness = watched.liveness();
  victim.kill(SIGTERM);
  victim.reap();
  expectText(checkUntilDead(liveness, milliseconds(5000)), {"rank 1", "was killed or has exited"});
}

// Also when it looks at the very moment: one in 7 to 200 looks sees the exiting flag and not yet the
// code, as the kernel fetches them one after the other.
TEST(Liveness, TellsAnExitCode) {
  for (int trial = 0; trial < 200 && !HasFailure(); ++trial) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Fd in(ends[0]);
    const Fd out(ends[1]);
    const Victim victim([] {},
                        [&in, word = '-']() mutable {
                          if (::read(in.get(), &word, 1) == 1) ::_exit(3);
                        });
    Watched watched({&victim});
    Liveness liveness = watched.liveness();
    ASSERT_EQ(::write(out.get(), "x", 1), 1);
    Status status;
    for (const auto until = Clock::now() + milliseconds(20000);
         status.ok() && Clock::now() < until;)
      status = liveness.check();
    expectText(status, {"exited with code 3"});
  }
}

// A big process takes long to go: the stat must tell before the pidfd does.
TEST(Liveness, SeesABigProcessGoBeforeItIsGone) {
  constexpr std::size_t kBytes = std::size_t{512} << 20;
  int early = 0;
  for (int trial = 0; trial < 20 && early == 0; ++trial) {
    const Victim victim([] {
      void* const at =
          ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ::madvise(at, kBytes, MADV_NOHUGEPAGE);
      std::memset(at, 1, kBytes);
    });
    Watched watched({&victim});
    Liveness liveness = watched.liveness();
    ASSERT_TRUE(liveness.check().ok());
    victim.kill(SIGKILL);
    const Status status = checkUntilDead(liveness, milliseconds(5000));
    expectText(status, {"rank 1", "was killed by SIGKILL"});
    pollfd death{victim.pidfd(), POLLIN, 0};
    early += ::poll(&death, 1, 0) == 0;
  }
  EXPECT_GT(early, 0) << "the exiting flag was of no use";
}

TEST(Liveness, WorksWithEitherDescriptorAlone) {
  for (const bool withPidfd : {false, true}) {
    const Victim victim;
    Watched watched({});
    watched.add(withPidfd ? victim.pidfd() : -1, withPidfd ? -1 : victim.stat(), victim.pid());
    Liveness liveness = watched.liveness();
    ASSERT_TRUE(liveness.check().ok());
    victim.kill(SIGKILL);
    expectText(checkUntilDead(liveness, milliseconds(5000)), {"rank 1"});
  }
}

// Its main thread leaves (state Z, exiting flag), the process lives on.
TEST(Liveness, LeavingMainThreadIsNoDeath) {
  const Victim victim([] {
    std::thread([] {
      for (;;) ::pause();
    }).detach();
    ::signal(SIGUSR1, [](int) { ::syscall(SYS_exit, 0); });  // of the thread alone
  });
  Watched watched({&victim});
  Liveness liveness = watched.liveness();
  ::syscall(SYS_tgkill, victim.pid(), victim.pid(), SIGUSR1);
  ProcStat stat;
  for (const auto until = Clock::now() + milliseconds(5000);
       stat.state != 'Z' && Clock::now() < until;)
    ASSERT_TRUE(readProcStat(victim.stat(), &stat));
  ASSERT_EQ(stat.state, 'Z');
  EXPECT_TRUE(checkUntilDead(liveness, milliseconds(50)).ok());
  victim.kill(SIGKILL);
  expectText(checkUntilDead(liveness, milliseconds(5000)), {"was killed by SIGKILL"});
}

TEST(Liveness, WarnsOnceOfAStop) {
  const Victim victim;
  Watched watched({&victim});
  Liveness liveness = watched.liveness();
  victim.kill(SIGSTOP);
  EXPECT_TRUE(checkUntilWarned(liveness, watched, 1));
  EXPECT_TRUE(checkUntilDead(liveness, Liveness::kStopPatience).ok());
  ASSERT_EQ(watched.warnings.size(), 1u);
  EXPECT_NE(watched.warnings[0].find(text("rank 1 (host b, pid ", victim.pid(), ") is stopped")),
            std::string::npos)
      << watched.warnings[0];
  EXPECT_EQ(liveness.stopped().size(), 1u);
  victim.kill(SIGCONT);
  while (!liveness.stopped().empty()) ASSERT_TRUE(checkUntilDead(liveness, milliseconds(10)).ok());
  victim.kill(SIGSTOP);
  EXPECT_TRUE(checkUntilWarned(liveness, watched, 2)) << "a second stop is news";
  victim.kill(SIGKILL);
  expectText(checkUntilDead(liveness, milliseconds(5000)), {"was killed by SIGKILL"});
}

bool isStillWithin(const Liveness& liveness, bool still) {
  for (const auto until = Clock::now() + milliseconds(5000); Clock::now() < until;) {
    if (liveness.isStill(1) == still) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

TEST(Liveness, StillIsWhoIsStoppedOrDead) {
  const Victim victim;
  Watched watched({&victim});
  const Liveness liveness = watched.liveness();
  EXPECT_FALSE(liveness.isStill(0)) << "oneself";
  EXPECT_FALSE(liveness.isStill(1));
  victim.kill(SIGSTOP);
  EXPECT_TRUE(isStillWithin(liveness, true));
  victim.kill(SIGCONT);
  EXPECT_TRUE(isStillWithin(liveness, false));
  victim.kill(SIGKILL);
  EXPECT_TRUE(isStillWithin(liveness, true));
}

std::string statLine(const std::string& name, char state, int flags, int threads, int exitCode) {
  std::string line = text("71 (", name, ") ", std::string(1, state), " 1 71 71 0 -1 ", flags);
  for (int field = 10; field <= 52; ++field)
    line += text(" ", field == 20 ? threads : field == 52 ? exitCode : 0);
  return line + "\n";
}

TEST(ProcStat, ReadsLines) {
  ProcStat stat;
  ASSERT_TRUE(parseProcStat(statLine("a ) b (c", 'T', 64, 5, 19), &stat));
  EXPECT_TRUE(stat.stopped());
  EXPECT_FALSE(stat.dying());
  EXPECT_EQ(stat.threads, 5);
  for (const char* bad : {"", "71 (x", "71 (x) R 1 2 3", "71 (x) R a b c d e f g"})
    EXPECT_FALSE(parseProcStat(bad, &stat)) << bad;
}

TEST(ProcStat, TellsDyingFromLeaving) {
  const auto dying = [](char state, int flags, int threads, int code) {
    ProcStat stat;
    EXPECT_TRUE(parseProcStat(statLine("x", state, flags, threads, code), &stat));
    return stat.dying();
  };
  EXPECT_FALSE(dying('R', 0, 1, 0));
  EXPECT_TRUE(dying('D', 4, 1, 0)) << "the only thread exits";
  EXPECT_TRUE(dying('Z', 4, 2, 9)) << "killed, the other thread frees the memory";
  EXPECT_FALSE(dying('Z', 4, 2, 0)) << "pthread_exit of the main thread";
  EXPECT_FALSE(dying('Z', 4, 2, 19)) << "the same, and then stopped";
}

}  // namespace
}  // namespace weft::watch
