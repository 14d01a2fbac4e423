// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/trial.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weft::shm {
namespace {

using List = std::vector<std::uint32_t>;

TEST(Trial, TriesAFewOfMany) {
  std::vector<PeerInfo> infos(9);
  EXPECT_EQ(triedBy(6, infos), (List{7, 8, 1, 5}));
  infos.resize(1024);
  EXPECT_EQ(triedBy(0, infos).size(), 10u);
  infos.resize(1);
  EXPECT_EQ(triedBy(0, infos), List{});
}

TEST(Trial, TriesAllWhereNamespacesDiffer) {
  std::vector<PeerInfo> infos(5);
  infos[3].namespaces = 1;
  EXPECT_EQ(triedBy(1, infos), (List{2, 3, 4, 0}));
}

TEST(Trial, PidsOfOtherNamespacesAreTheKernels) {
  const Fd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!self) GTEST_SKIP() << "no pidfd";
  PeerInfo mine, peer;
  peer.pid = 12345;
  EXPECT_EQ(pidHere(peer, mine, self), 12345);
  peer.namespaces = 1;
  EXPECT_EQ(pidHere(peer, mine, self), ::getpid());
  EXPECT_EQ(pidHere(peer, mine, Fd()), 0);
}

TEST(Trial, ProbeIsOneOfAProcess) {
  Probe *first = nullptr, *second = nullptr;
  ASSERT_TRUE(ownProbe(&first).ok() && ownProbe(&second).ok());
  EXPECT_EQ(first, second);
  const Token name = first->process;
  const pid_t child = ::fork();
  if (child == 0) {
    Probe* own = nullptr;
    ::_exit(ownProbe(&own).ok() && own->process != name ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// By its pid an impostor answers.
TEST(Trial, AnotherProcessOfThatPidIsNotTouched) {
  const Fd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  Probe* probe = nullptr;
  ASSERT_TRUE(ownProbe(&probe).ok());
  if (!self) GTEST_SKIP() << "no pidfd";
  const mapped::PeerProcess process{::getpid(), Fd(::dup(self.get())), Fd()};
  PeerInfo peer;
  peer.probe = reinterpret_cast<std::uint64_t>(probe);
  EXPECT_NE(tryDirect(peer, process).text().find("is not pid"), std::string::npos);
  EXPECT_EQ(probe->word.load(), 0u);
  peer.process = probe->process;
  EXPECT_TRUE(tryDirect(peer, process).ok());
  EXPECT_NE(probe->word.load(), 0u);
}

TEST(Trial, InvisiblePidIsNotTried) {
  EXPECT_NE(tryDirect({}, {}).text().find("is not visible"), std::string::npos);
}

}  // namespace
}  // namespace weft::shm
