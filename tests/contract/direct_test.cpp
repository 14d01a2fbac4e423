// SPDX-License-Identifier: Apache-2.0
// Puts into a peer's own memory, by address.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <cstring>

#include "courier.h"
#include "transports/mapped/direct.h"

namespace weft::transport {
namespace {

class Direct : public testing::TestWithParam<Fabric> {
 protected:
  // Containers may forbid process_vm_writev. Asked for without any of the code under test.
  void SetUp() override {
    if (!GetParam().processes) return;
    static std::uint64_t word = 0;
    const pid_t child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
    std::uint64_t one = 1;
    const iovec from{&one, sizeof(one)};
    const iovec to{&word, sizeof(word)};
    const bool permitted = ::process_vm_writev(child, &from, 1, &to, 1, 0) == sizeof(one);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (!permitted) GTEST_SKIP() << "this machine forbids process_vm_writev";
  }
};
INSTANTIATE_TEST_SUITE_P(Fabrics, Direct, testing::ValuesIn(mappedFabrics()),
                         [](const auto& of) { return of.param.name; });

class DirectBetweenProcesses : public Direct {};
INSTANTIATE_TEST_SUITE_P(Fabrics, DirectBetweenProcesses, testing::ValuesIn(forkedFabrics()),
                         [](const auto& of) { return of.param.name; });

TEST_P(Direct, LandsInUserMemory) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    constexpr std::size_t kSlot = 3u << 20;
    const WindowLayout layout = smallLayout(3);
    const auto transport = rank.make(layout);
    REQUIRE(transport->caps().direct);
    std::vector<std::byte> target(rank.ranks * kSlot);
    std::vector<std::byte> source(kSlot);
    const auto addresses = rank.share(reinterpret_cast<std::uint64_t>(target.data()));
    std::uint64_t epoch = 0;
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{4095}, kSlot - 3}) {
      ++epoch;
      Courier courier(*transport);
      fillPattern(source, epoch + rank.rank);
      for (std::uint32_t peer = 0; peer < rank.ranks; ++peer)
        courier.send({.peer = peer,
                      .arrival = arrivalOffset(layout, 0, rank.rank),
                      .flag = epoch,
                      .tag = rank.rank,
                      .src = source.data(),
                      .bytes = bytes,
                      .target = addresses[peer] + rank.rank * kSlot + 3,
                      .direct = true});
      for (std::uint32_t from = 0; from < rank.ranks; ++from) {
        courier.await(transport->own().arrivals()[from], epoch);
        requirePattern({target.data() + from * kSlot + 3, bytes}, epoch + from);
      }
      courier.drain();
      rank.barrier();
    }
  });
}

TEST_P(Direct, GetsFromAndPutsIntoUserMemory) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    const auto transport = rank.make(smallLayout(3));
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}, std::size_t{3} << 20}) {
      std::vector<std::byte> source(bytes), fetched(bytes), target(rank.ranks * bytes);
      fillPattern(source, rank.rank);
      const auto sources = rank.share(reinterpret_cast<std::uint64_t>(source.data()));
      const auto targets = rank.share(reinterpret_cast<std::uint64_t>(target.data()));
      for (std::uint32_t peer = 0; peer < rank.ranks; ++peer) {
        REQUIRE(transport->getFrom(peer, sources[peer], fetched.data(), bytes));
        requirePattern(fetched, peer);
        REQUIRE(transport->putTo(peer, targets[peer] + rank.rank * bytes, source.data(), bytes));
      }
      rank.barrier();
      for (std::uint32_t from = 0; from < rank.ranks; ++from)
        requirePattern({target.data() + from * bytes, bytes}, from);
      rank.barrier();
    }
  });
}

TEST_P(Direct, IsOffForAllIfOneRankSaysSo) {
  runAllWell(GetParam(), 3, [](Rank& rank) {
    TransportSetup setup = rank.setup(smallLayout(3));
    setup.allowDirect = rank.rank != 1;
    std::unique_ptr<Transport> transport;
    const Status made = rank.tryMake(setup, &transport);
    REQUIRE(made.ok(), made.text());
    REQUIRE(!transport->caps().direct);
    rank.barrier();
  });
}

// (In one process a bad address is a crash, as for memcpy.)
TEST_P(DirectBetweenProcesses, NamesABadAddress) {
  runAllWell(GetParam(), 2, [](Rank& rank) {
    const WindowLayout layout = smallLayout(2);
    const auto transport = rank.make(layout);
    const auto pids = rank.share(::getpid());
    if (rank.rank == 0) {
      std::byte byte{1};
      Courier courier(*transport);
      courier.expectFailures = true;
      const bool accepted = courier.send({.peer = 1,
                                          .arrival = arrivalOffset(layout, 0, 0),
                                          .flag = 5,
                                          .src = &byte,
                                          .bytes = 1,
                                          .target = 64,
                                          .direct = true});
      courier.drain();
      REQUIRE(!accepted || courier.failed().size() == 1);
      const std::string& error = transport->lastError().text();
      REQUIRE(error.find(text("pid ", pids[1])) != std::string::npos, error);
      REQUIRE(error.find("Bad address") != std::string::npos, error);
      REQUIRE(error.find("fix:") != std::string::npos, error);
    }
    if (rank.rank == 0) {
      std::byte byte{1};
      REQUIRE(!transport->getFrom(1, 64, &byte, 1));
      REQUIRE(transport->lastError().text().find("rank 1") != std::string::npos,
              transport->lastError().text());
      REQUIRE(!transport->putTo(1, 64, &byte, 1));
    }
    rank.barrier();
    REQUIRE(transport->own().arrivals()[0].flag.load() == 0, "arrival of a failed put");
  });
}

TEST_P(DirectBetweenProcesses, NeverWritesToTheDead) {
  const auto outcomes = runRanks(GetParam(), 2, [](Rank& rank) {
    const WindowLayout layout = smallLayout(2);
    const auto transport = rank.make(layout);
    static std::uint64_t target = 0;
    const auto pids = rank.share(::getpid());
    if (rank.rank == 1) {
      for (;;) ::pause();
    }
    ::kill(pids[1], SIGKILL);
    pollfd death{transport->deathFd(1), POLLIN, 0};
    REQUIRE(::poll(&death, 1, 10000) == 1);
    std::byte bytes[8] = {};
    Courier courier(*transport);
    courier.expectFailures = true;
    courier.send({.peer = 1,
                  .arrival = arrivalOffset(layout, 0, 0),
                  .flag = 5,
                  .src = bytes,
                  .bytes = 8,
                  .target = reinterpret_cast<std::uint64_t>(&target),
                  .direct = true});
    courier.drain();
    const std::string& error = transport->lastError().text();
    REQUIRE(error.find("has ended") != std::string::npos, error);
  });
  EXPECT_EQ(outcomes[0].failure, "");
  EXPECT_EQ(outcomes[1].signal, SIGKILL);
}

}  // namespace
}  // namespace weft::transport
