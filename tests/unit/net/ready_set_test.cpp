// SPDX-License-Identifier: Apache-2.0
#include "net/ready_set.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft::net {
namespace {

struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    here = Socket(fds[0]);
    there = Socket(fds[1]);
  }
  void say() const { EXPECT_EQ(::write(there.fd(), "x", 1), 1); }
  Socket here, there;
};

using Ids = std::vector<std::uint64_t>;

bool isReadable(const ReadySet& set) {
  pollfd entry{set.fd(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(ReadySet, TellsThoseThatHaveSomething) {
  ReadySet set;
  ASSERT_TRUE(set.isOpen().ok());
  const Pair a, b;
  EXPECT_TRUE(set.watch(a.here.fd(), 1) && set.watch(b.here.fd(), 2));
  EXPECT_FALSE(isReadable(set));
  EXPECT_EQ(set.take(), Ids());
  b.say();
  EXPECT_TRUE(isReadable(set));
  EXPECT_EQ(set.take(), Ids{2});
  EXPECT_EQ(set.take(), Ids{2}) << "as long as it has not been read";
  set.remove(b.here.fd());
  EXPECT_EQ(set.take(), Ids());
}

TEST(ReadySet, WritersAreToldUntilTheyAreNotAnyMore) {
  ReadySet set;
  const Pair a;
  EXPECT_TRUE(set.watch(a.here.fd(), 7, true));
  EXPECT_EQ(set.take(), Ids{7});
  EXPECT_TRUE(set.watch(a.here.fd(), 7, false));
  EXPECT_EQ(set.take(), Ids());
}

// More than one call tells: level-triggered, so that none is lost.
TEST(ReadySet, ManyAreToldByTurns) {
  ReadySet set;
  const std::vector<Pair> pairs(300);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].say();
    EXPECT_TRUE(set.watch(pairs[i].here.fd(), i));
  }
  std::size_t told = 0;
  for (Ids ids = set.take(); !ids.empty(); ids = set.take()) {
    for (const std::uint64_t id : ids) set.remove(pairs[id].here.fd());
    told += ids.size();
  }
  EXPECT_EQ(told, pairs.size());
}

TEST(ReadySet, WithoutADescriptorItSaysSo) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  const ReadySet set;
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(set.isOpen().code(), Code::SystemError);
  EXPECT_NE(set.isOpen().text().find("no epoll(7): Too many open files"), std::string::npos);
}

}  // namespace
}  // namespace weft::net
