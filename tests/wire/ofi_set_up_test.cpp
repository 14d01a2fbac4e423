// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/deadline.h"
#include "station.h"
#include "transports/ofi/library.h"
#include "transports/ofi/ofi.h"
#include "transports/ofi/ofi_wire.h"

// What makeOfiWire() says where it cannot make one: the same on all ranks, with a fix.
namespace weft::wire {
namespace {

const transport::Fabric kRanks{.name = "tcp", .processes = true, .wire = ofi::makeOfiWire};

// Each rank sets its environment by `prepare`; all must fail with one text, which is returned to
// `judge`.
void expectFailure(const std::function<void(std::uint32_t)>& prepare,
                   const std::function<void(const std::string&)>& judge,
                   const transport::Fabric& ranks = kRanks) {
  if (const std::string why = unavailable({kRanks, "rdma"}); !why.empty()) GTEST_SKIP() << why;
  transport::runAllWell(ranks, 3, [&](transport::Rank& rank) {
    ::setenv("WEFT_OFI_PROVIDER", "tcp;ofi_rxm", 1);
    prepare(rank.rank);
    Station::Memory memory;
    std::unique_ptr<Wire> wire;
    const Status status = Station::makeWire(rank, memory, &wire);
    REQUIRE(!status.ok());
    REQUIRE(status.text().find("fix:") != std::string::npos, status.text());
    judge(status.text());
    std::array<char, 400> text{};
    status.text().copy(text.data(), text.size() - 1);
    for (const auto& other : rank.share(text)) REQUIRE(other == text, other.data());
  });
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(OfiSetUp, NoSuchDeviceOnOneRank) {
  expectFailure(
      [](std::uint32_t rank) {
        if (rank == 1) ::setenv("WEFT_NET_DEVICES", "nosuchdevice", 1);
      },
      [](const std::string& text) {
        REQUIRE(has(text, "rank 1") && has(text, "WEFT_NET_DEVICES") && has(text, "tcp;ofi_rxm"),
                text);
      });
}

TEST(OfiSetUp, NoSuchProvider) {
  expectFailure([](std::uint32_t) { ::setenv("WEFT_OFI_PROVIDER", "warp", 1); },
                [](const std::string& text) { REQUIRE(has(text, "warp"), text); });
}

TEST(OfiSetUp, DifferentModes) {
  expectFailure(
      [](std::uint32_t rank) { ::setenv("WEFT_OFI_MODE", rank == 2 ? "msg" : "rdma", 1); },
      [](const std::string& text) {
        REQUIRE(has(text, "rank 0") && has(text, "rank 2") && has(text, "WEFT_OFI_MODE"), text);
      });
}

// Rank 1 says that it takes shorter messages: libfabric has begun in it with other settings.
Status makeWithShorterMessages(const WireSetup& setup, std::unique_ptr<Wire>* out) {
  WireSetup shorter = setup;
  shorter.exchange = [&](std::span<const std::byte> mine, auto* all) {
    std::vector<std::byte> said(mine.begin(), mine.end());
    if (setup.rank == 1 && said.size() >= sizeof(ofi::Offer))
      *reinterpret_cast<std::uint64_t*>(said.data() + said.size() - sizeof(ofi::Offer) +
                                        offsetof(ofi::Offer, messageBytes)) = 1920;
    return setup.exchange(said, all);
  };
  return ofi::makeOfiWire(shorter, out);
}

TEST(OfiSetUp, DifferentBuffers) {
  const transport::Fabric ranks{.name = "tcp", .processes = true, .wire = makeWithShorterMessages};
  expectFailure([](std::uint32_t) {},
                [](const std::string& text) {
                  REQUIRE(has(text, "rank 0") && has(text, "rank 1") && has(text, " of 1920"),
                          text);
                  REQUIRE(has(text, "FI_OFI_RXM_BUFFER_SIZE"), text);
                },
                ranks);
}

// An interface of this host with an IPv4 address, besides lo; empty if there is none.
std::string anotherInterface() {
  ifaddrs* all = nullptr;
  std::string name;
  if (::getifaddrs(&all) != 0) return name;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET &&
        (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0)
      name = one->ifa_name;
  ::freeifaddrs(all);
  return name;
}

TEST(OfiSetUp, NamedInterfacesAreRails) {
  if (const std::string why = unavailable({kRanks, "rdma"}); !why.empty()) GTEST_SKIP() << why;
  const std::string other = anotherInterface();
  transport::runAllWell(kRanks, 2, [&](transport::Rank& rank) {
    ::setenv("WEFT_OFI_PROVIDER", "tcp;ofi_rxm", 1);
    ::setenv("WEFT_NET_DEVICES", other.empty() ? "=lo" : text("=lo,", other).c_str(), 1);
    Station::Memory memory;
    std::unique_ptr<Wire> wire;
    const Status status = Station::makeWire(rank, memory, &wire);
    REQUIRE(status.ok(), status.text());
    const std::string where = wire->describe(1 - rank.rank);
    REQUIRE(wire->rails(1 - rank.rank) == (other.empty() ? 1u : 2u), where);
    REQUIRE(has(where, "lo 127.0.0.1:") && has(where, other.c_str()), where);
  });
}

std::ptrdiff_t openDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// Rank 1 connects to rank 0, which has taken the connection but not yet read the request when its wire
// goes: what libfabric keeps open then is open for ever.
TEST(OfiSetUp, AWireThatGoesLeavesNoConnectionOpen) {
  if (const std::string why = unavailable({kRanks, "rdma"}); !why.empty()) GTEST_SKIP() << why;
  transport::runAllWell(kRanks, 2, [&](transport::Rank& rank) {
    ::setenv("WEFT_OFI_PROVIDER", "tcp;ofi_rxm", 1);
    const Station::Memory memory;
    std::ptrdiff_t open = 0;
    for (const bool connects : {false, true}) {
      std::unique_ptr<Wire> wire;
      const Status status = Station::makeWire(rank, memory, &wire);
      REQUIRE(status.ok(), status.text());
      WireEvent event;
      const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
      const auto turn = [&](std::uint32_t whose, const auto& what) {
        if (connects && rank.rank == whose) what();
        rank.barrier();
      };
      turn(1, [&] { REQUIRE(wire->write({.peer = 0, .cookie = 7}) == WireResult::Accepted); });
      turn(0, [&] { pause(), wire->poll(&event, 1); });
      turn(1, [&] { pause(), wire->poll(&event, 1); });
      wire.reset();
      const std::ptrdiff_t left = openDescriptors();
      if (connects && rank.rank == 0)
        REQUIRE(left == open, text(left, " descriptors, ", open, " before"));
      open = left;
      rank.barrier();
    }
  });
}

// Rank 1 is gone before anything was written to it: rank 0 is told so when its patience ends, not before.
TEST(OfiSetUp, APeerThatIsGoneIsNotReached) {
  if (const std::string why = unavailable({kRanks, "rdma"}); !why.empty()) GTEST_SKIP() << why;
  transport::runAllWell(kRanks, 2, [&](transport::Rank& rank) {
    ::setenv("WEFT_OFI_PROVIDER", "tcp;ofi_rxm", 1);
    const Station::Memory memory;
    WireSetup setup = Station::setupOf(rank, memory);
    setup.timeoutMs = 300;
    std::unique_ptr<Wire> wire;
    const Status status = rank.fabric.wire(setup, &wire);
    REQUIRE(status.ok(), status.text());
    if (rank.rank == 1) wire.reset();
    rank.barrier();
    if (rank.rank == 0) {
      const Deadline patience = Deadline::in(setup.timeoutMs);
      REQUIRE(wire->write({.peer = 1, .cookie = 7}) == WireResult::Accepted);
      REQUIRE(wire->isUnsettled());
      WireEvent event;
      while (wire->poll(&event, 1) == 0) ::sched_yield();
      REQUIRE(patience.expired() && event.kind == WireEvent::LinkDown && event.peer == 1);
      const std::string error = wire->lastError().text();
      REQUIRE(has(error, "rank 1") && has(error, "no connection") && has(error, "WEFT_NET_DEVICES"),
              error);
      REQUIRE(wire->write({.peer = 1}) == WireResult::Failed && !wire->isUnsettled());
    }
    rank.barrier();
  });
}

class OfiConnections : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, OfiConnections, testing::Values("rdma", "msg"),
                         [](const auto& of) { return of.param; });

// Those that nothing was written to are not connected. Rank 2 does not poll at first, which holds up what
// is for it alone: more than is kept.
TEST_P(OfiConnections, AreMadeByTheFirstWrite) {
  const WireCase wire{kRanks, GetParam()};
  if (const std::string why = unavailable(wire); !why.empty()) GTEST_SKIP() << why;
  setEnvironment(wire);
  const Board board;
  transport::runAllWell(kRanks, 4, [&](transport::Rank& rank) {
    Station me(rank, board);
    constexpr std::uint32_t kEach = 20;
    const auto connected = [&](std::uint32_t peer) { return me.wire().isConnected(peer); };
    for (std::uint32_t peer = 0; peer < 4; ++peer) REQUIRE(peer == me.self() || !connected(peer));
    rank.barrier();
    for (std::uint32_t i = 0; i < kEach && me.self() == 0; ++i)
      for (const std::uint32_t peer : {2u, 1u}) me.send({.peer = peer, .immediate = i});
    if (me.self() == 0) me.until("rank 1's", [&] { return me.heard() == 1; });
    if (me.self() == 1) me.until("rank 0's", [&] { return me.heard() == kEach; });
    if (me.self() == 1) me.send({.peer = 0, .immediate = 1});
    if (me.self() == 0) REQUIRE(me.wire().isUnsettled() && connected(1) && !connected(2));
    if (me.self() == 1) me.until("its answer", [&] { return me.unanswered() == 0; });
    rank.barrier();
    if (me.self() == 2) me.until("what was kept", [&] { return me.heard() == kEach; });
    me.meet();
    REQUIRE(!me.wire().isUnsettled());
    for (std::uint32_t peer = 0; peer < 4; ++peer)
      REQUIRE(peer == me.self() ||
              connected(peer) == (peer * me.self() == 0 && peer + me.self() < 3));
  });
}

// Also a rank that reaches nobody takes part, without libfabric's help.
TEST(OfiSetUp, ARankThatReachesNobody) {
  if (const std::string why = unavailable({kRanks, "rdma"}); !why.empty()) GTEST_SKIP() << why;
  transport::runAllWell(kRanks, 3, [&](transport::Rank& rank) {
    ::setenv("WEFT_OFI_PROVIDER", rank.rank == 2 ? "warp" : "tcp;ofi_rxm", 1);
    Station::Memory memory;
    std::unique_ptr<Wire> wire;
    const Status status = Station::makeWire(rank, memory, &wire, {true, true, false});
    REQUIRE(status.ok(), status.text());
    WireEvent event;
    if (rank.rank == 2) {
      REQUIRE(wire->poll(&event, 1) == 0 && wire->rails(0) == 0);
      REQUIRE(wire->write({.peer = 0}) == WireResult::Failed && !wire->lastError().ok());
    }
    rank.barrier();
  });
}

// Libraries that libfabric brings along install handlers for their own ends.
TEST(OfiLibrary, LeavesSignalsAlone) {
  const ofi::Library* library = nullptr;
  if (const Status status = ofi::openLibrary(&library); !status.ok()) GTEST_SKIP() << status.text();
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction now {};
    ASSERT_EQ(::sigaction(signal, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, SIG_DFL) << "signal " << signal;
  }
}

}  // namespace
}  // namespace weft::wire
