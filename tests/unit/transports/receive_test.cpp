// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/receive.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "../slow_build.h"

namespace weft::transport {
namespace {

ssize_t receiveOne(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  return shm::receiveMessage(socket, &message);
}

// With one look, one in some 10,000 of these words is lost.
TEST(Receive, WhoSpeaksAndHangsUpIsHeard) {
  constexpr int kRounds = test::kSlowBuild ? 2000 : 30000;
  std::atomic<int> speaker{-1};
  std::thread other([&] {
    for (int round = 0; round < kRounds; ++round) {
      int socket = -1;
      while ((socket = speaker.exchange(-1)) < 0) std::this_thread::yield();
      for (int pause = round % 200; pause > 0; --pause)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      EXPECT_EQ(::send(socket, "x", 1, MSG_NOSIGNAL), 1);
      ::close(socket);
    }
  });
  int unheard = 0;
  for (int round = 0; round < kRounds; ++round) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    speaker = ends[0];
    ssize_t bytes = 0;
    while ((bytes = receiveOne(ends[1])) < 0 && errno == EAGAIN) std::this_thread::yield();
    if (bytes != 1) ++unheard;
    ::close(ends[1]);
  }
  other.join();
  EXPECT_EQ(unheard, 0);
}

}  // namespace
}  // namespace weft::transport
