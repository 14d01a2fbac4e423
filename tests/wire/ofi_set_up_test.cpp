// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstdlib>

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
                                        offsetof(ofi::Offer, messageBytes)) = 3840;
    return setup.exchange(said, all);
  };
  return ofi::makeOfiWire(shorter, out);
}

TEST(OfiSetUp, DifferentBuffers) {
  const transport::Fabric ranks{.name = "tcp", .processes = true, .wire = makeWithShorterMessages};
  expectFailure([](std::uint32_t) {},
                [](const std::string& text) {
                  REQUIRE(has(text, "rank 0") && has(text, "rank 1") && has(text, " of 3840"),
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

// Rank 2 leaves before it has greeted anybody.
TEST(OfiSetUp, ARankThatLeavesIsNotGreeted) {
  if (const std::string why = unavailable({kRanks, "rdma"}); !why.empty()) GTEST_SKIP() << why;
  const Board board;
  transport::runAllWell(kRanks, 3, [&](transport::Rank& rank) {
    ::setenv("WEFT_OFI_PROVIDER", "tcp;ofi_rxm", 1);
    const Station::Memory memory;
    WireSetup setup = Station::setupOf(rank, memory);
    std::atomic<std::uint32_t>& left = board.arrivals(0);
    setup.exchange = [&, inner = setup.exchange, calls = 0](auto mine, auto* all) mutable {
      if (left == 0 && all != nullptr) WEFT_TRY(inner(mine, all));
      left += all != nullptr && ++calls == 3 && rank.rank == 2;
      return left == 0 ? Status() : Status::error(Code::RemoteError, "rank 2 left");
    };
    std::unique_ptr<Wire> wire;
    const Deadline soon = Deadline::in(setup.timeoutMs / 2);
    const Status status = rank.fabric.wire(setup, &wire);
    REQUIRE(status.text().find("rank 2 left") != std::string::npos, status.text());
    REQUIRE(!soon.expired());
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
