// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/fd_exchange.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace weft::shm {
namespace {

class TwoRanks : public testing::Test {
 protected:
  void SetUp() override {
    for (std::uint32_t r = 0; r < 2; ++r) {
      infos_[r].rank = r;
      infos_[r].pid = ::getpid();
      std::strcpy(infos_[r].host, "h");
      ASSERT_TRUE(randomToken(&infos_[r].token).ok());
      ASSERT_TRUE(randomToken(&infos_[r].secret).ok());
      ASSERT_TRUE(exchanges_[r].open(infos_[r]).ok());
      for (Fd& descriptor : mine_[r]) descriptor = Fd(::dup(STDIN_FILENO));
    }
  }
  Status meet(std::uint32_t rank) {
    std::vector<std::optional<PeerHandles>> handles;
    return exchanges_[rank].meet(infos_, mine_[rank], Deadline::in(20000), &handles);
  }

  std::vector<PeerInfo> infos_{2};
  FdExchange exchanges_[2];
  Descriptors mine_[2];
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
TEST_F(TwoRanks, LostDescriptorsAreNamed) {
  int report[2];
  ASSERT_EQ(::pipe(report), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    allowTwoMore();
    const Status second = meet(1);
    const std::string text =
        second.code() == Code::SystemError ? "system error: " + second.text() : second.text();
    ::_exit(::write(report[1], text.data(), text.size()) < 0);
  }
  ::close(report[1]);
  const Status first = meet(0);
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

}  // namespace
}  // namespace weft::shm
