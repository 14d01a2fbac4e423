// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/fd_exchange.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <string_view>
#include <thread>

namespace weft::shm {
namespace {

// Ranks that listen already.
class Ranks {
 public:
  explicit Ranks(std::uint32_t count) : infos(count), mine(count), exchanges_(count) {
    for (std::uint32_t r = 0; r < count; ++r) {
      infos[r].rank = r;
      infos[r].pid = ::getpid();
      std::strcpy(infos[r].host, "h");
      EXPECT_TRUE(randomToken(&infos[r].token).ok());
      EXPECT_TRUE(randomToken(&infos[r].secret).ok());
      EXPECT_TRUE(exchanges_[r].open(infos[r]).ok());
    }
  }
  Status meet(std::uint32_t rank, int ms = 20000) {
    return exchanges_[rank].meet(infos, mine[rank], Deadline::in(ms), &handles);
  }

  std::vector<PeerInfo> infos;
  std::deque<Descriptors> mine;
  Handles handles;  // of the rank that has met last

 private:
  std::deque<FdExchange> exchanges_;
};

// This process may have two more descriptors.
void allowTwoMore() {
  const Fd first(::dup(STDIN_FILENO)), second(::dup(STDIN_FILENO));
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = static_cast<rlim_t>(second.get()) + 1;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Rank 1 has room for its socket, and for one of the four that come over it.
TEST(FdExchange, LostDescriptorsAreNamed) {
  Ranks ranks(2);
  for (Descriptors& all : ranks.mine)
    for (Fd& one : all) one = Fd(::dup(STDIN_FILENO));
  int report[2];
  ASSERT_EQ(::pipe(report), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    allowTwoMore();
    const Status second = ranks.meet(1);
    const std::string text =
        second.code() == Code::SystemError ? "system error: " + second.text() : second.text();
    ::_exit(::write(report[1], text.data(), text.size()) < 0);
  }
  ::close(report[1]);
  const Status first = ranks.meet(0);
  char said[1000] = {};
  EXPECT_GT(::read(report[0], said, sizeof(said) - 1), 0);
  ::close(report[0]);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(first.ok()) << first.text();
  EXPECT_EQ(std::string(said),
            "system error: shm transport: descriptors from rank 0 (host h, pid " +
                std::to_string(::getpid()) +
                ") were lost; fix: raise the limit of open files (ulimit -n)");
}

bool isSame(const Fd& one, const Fd& other) {
  struct stat a {
  }, b{};
  if (!one || !other) return !one && !other;
  return ::fstat(one.get(), &a) == 0 && ::fstat(other.get(), &b) == 0 && a.st_ino == b.st_ino;
}

// Everybody gets everybody's, and knows which is which: each rank lacks another one.
TEST(FdExchange, MoreThanOneMessageHolds) {
  constexpr std::uint32_t kRanks = 90;
  static_assert(kRanks * (kDescriptors - 1) > kMostDescriptors);
  Ranks ranks(kRanks);
  for (std::uint32_t r = 0; r < kRanks; ++r)
    for (std::size_t i = 0; i < kDescriptors; ++i)
      if (i != r % kDescriptors) ranks.mine[r][i] = Fd(::memfd_create("test", MFD_CLOEXEC));
  const auto wrongIn = [&](std::uint32_t rank) {
    if (!ranks.meet(rank).ok() || ranks.handles[rank]) return 1;
    for (std::uint32_t r = 0; r < kRanks; ++r)
      for (std::size_t i = 0; r != rank && i < kDescriptors; ++i)
        if (!isSame((*ranks.handles[r])[i], ranks.mine[r][i])) return 2;
    return 0;
  };
  std::vector<pid_t> children;
  for (std::uint32_t r = 1; r < kRanks; ++r) {
    children.push_back(::fork());
    if (children.back() == 0) ::_exit(wrongIn(r));
  }
  EXPECT_EQ(wrongIn(0), 0);
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

// The first rank knows who is late, and says so to those whose time has come as well.
TEST(FdExchange, WhoIsLateIsNamedByAll) {
  Ranks ranks(3);
  int report[2];
  ASSERT_EQ(::pipe(report), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text = ranks.meet(1, 200).text();
    ::_exit(::write(report[1], text.data(), text.size()) < 0);
  }
  const Status first = ranks.meet(0, 300);
  char said[1000] = {};
  EXPECT_GT(::read(report[0], said, sizeof(said) - 1), 0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(first.code(), Code::Timeout);
  EXPECT_EQ(first.data().missing, std::vector<std::uint32_t>{2});
  EXPECT_EQ(first.text(), said);
  ::close(report[0]);
  ::close(report[1]);
}

TEST(FdExchange, FirstRankThatIsLateIsNamed) {
  Ranks ranks(2);
  const Status second = ranks.meet(1, 50);
  EXPECT_EQ(second.code(), Code::Timeout);
  EXPECT_NE(second.text().find("in time from rank 0 (host h"), std::string::npos) << second.text();
}

void expectEnded(const Status& status, std::string_view how) {
  EXPECT_EQ(status.code(), Code::RemoteError);
  EXPECT_NE(status.text().find("rank 0 (host h"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find(how), std::string::npos) << status.text();
}

TEST(FdExchange, FirstRankThatHasEndedIsNamed) {
  Ranks ranks(2);
  ASSERT_TRUE(randomToken(&ranks.infos[0].token).ok());
  expectEnded(ranks.meet(1), "does not answer");
  Fd listener;
  ASSERT_TRUE(randomToken(&ranks.infos[0].token).ok());
  ASSERT_TRUE(listenAs(ranks.infos[0].token, &listener).ok());
  Ranks others(2);
  others.infos = ranks.infos;
  Status second;
  std::thread rank([&] { second = others.meet(1); });
  pollfd caller{listener.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&caller, 1, 20000), 1);
  listener.reset();
  rank.join();
  expectEnded(second, "hung up");
}

// Two that call as the same rank, and one without the secret: the hub keeps to the first.
TEST(FdExchange, ImpostorsAreHungUpOn) {
  Ranks ranks(2);
  const auto call = [&](const Token& secret) {
    Fd socket = newSocket();
    EXPECT_TRUE(connectTo(socket.get(), ranks.infos[0].token));
    EXPECT_TRUE(sendMessage(socket.get(), {FdMessage::Hello, 1, secret, {std::byte{}}}, {}));
    return socket;
  };
  const Fd stranger = call({}), member = call(ranks.infos[0].secret),
           second = call(ranks.infos[0].secret);
  const Status first = ranks.meet(0);
  EXPECT_TRUE(first.ok()) << first.text();
  ReceivedMessage heard;
  EXPECT_TRUE(receiveMessage(member.get(), &heard) && heard.sound);
  EXPECT_EQ(heard.secret, ranks.infos[1].secret);
  for (const Fd* other : {&stranger, &second})
    EXPECT_TRUE(receiveMessage(other->get(), &heard) && !heard.sound);
}

TEST(FdExchange, OneRankMeetsNobody) {
  Ranks ranks(1);
  EXPECT_TRUE(ranks.meet(0, 0).ok());
}

}  // namespace
}  // namespace weft::shm
