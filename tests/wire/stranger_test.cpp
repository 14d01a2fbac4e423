// SPDX-License-Identifier: Apache-2.0
// Who knows a rank's address and port, but no key, writes nothing into it; and who has the key
// writes nothing outside of what peers may write.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "base/deadline.h"
#include "station.h"
#include "transports/ofi/ofi.h"
#include "transports/ofi/ofi_wire.h"

namespace weft::wire {
namespace {

class Stranger : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, Stranger, testing::Values("rdma", "msg"),
                         [](const auto& of) { return of.param; });

// Behind the last colon of what describe() says: "..., lo 127.0.0.1:4711 -> 127.0.0.1:4712".
std::uint16_t portIn(const std::string& where) {
  return static_cast<std::uint16_t>(std::stoul(where.substr(where.rfind(':') + 1)));
}

// An endpoint that no rank knows, as any process of this host can open one. For one attempt: the
// provider cuts the connection of whoever writes with a wrong key.
class Attacker {
 public:
  explicit Attacker(std::uint16_t port) {
    const ofi::Library* library = nullptr;
    REQUIRE(ofi::openLibrary(&library).ok());
    DeviceFilter lo;
    REQUIRE(DeviceFilter::parse("=lo", &lo).ok());
    std::string why;
    const auto found = ofi::listCandidates(*library, "tcp;ofi_rxm", lo, {}, &why);
    REQUIRE(!found.empty(), why);
    REQUIRE(ofi::Rail::open(*library, found[0], {{}, 1000}, &rail_).ok());
    REQUIRE(rail_->prepare(1, 0, 0).ok());
    ofi::Contact victim = rail_->contact();
    auto* address = reinterpret_cast<sockaddr_in*>(victim.address);
    REQUIRE(address->sin_family == AF_INET);
    address->sin_port = htons(port);
    REQUIRE(rail_->insert(victim, &victim_).ok());
  }
  // Waits a moment for what becomes of it.
  void write(std::uint64_t key, std::uint64_t at) {
    attempt([&](void* context) {
      return fi_writedata(rail_->endpoint(), poison_.data(), poison_.size(), nullptr, 1, victim_,
                          at, key, context);
    });
  }
  void send(const ofi::Header& header) {
    std::vector<std::byte> message(sizeof(header) + header.bytes, kPoison);
    std::memcpy(message.data(), &header, sizeof(header));
    attempt([&](void* context) {
      return fi_send(rail_->endpoint(), message.data(), message.size(), nullptr, victim_, context);
    });
  }

 private:
  static constexpr std::byte kPoison{0x66};

  template <class Post>
  void attempt(const Post& post) {
    const Deadline soon = Deadline::in(2000);
    fi_context2 context{};
    ssize_t posted = -FI_EAGAIN;
    for (bool answered = false; !answered && !soon.expired(); ::sched_yield()) {
      if (posted == -FI_EAGAIN) posted = post(&context);
      fi_cq_data_entry entry{};
      const ssize_t got = fi_cq_read(rail_->queue(), &entry, 1);
      fi_cq_err_entry error{};
      if (got == -FI_EAVAIL) (void)fi_cq_readerr(rail_->queue(), &error, 0);
      answered = got > 0 || got == -FI_EAVAIL || (posted != 0 && posted != -FI_EAGAIN);
    }
  }

  std::unique_ptr<ofi::Rail> rail_;
  fi_addr_t victim_ = FI_ADDR_UNSPEC;
  std::array<std::byte, 64> poison_ = [] {
    std::array<std::byte, 64> bytes;
    bytes.fill(kPoison);
    return bytes;
  }();
};

TEST_P(Stranger, WritesNothing) {
  WireCase wire{{.name = "tcp", .processes = true, .wire = ofi::makeOfiWire}, GetParam()};
  runStations(wire, 2, [](Station& me) {
    me.meet();
    if (me.self() == 1) {
      const std::uint16_t port = portIn(me.wire().describe(0));
      for (std::uint64_t key = 0; key < 6; ++key) Attacker(port).write(key, 0);
      for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{0x77666d31}})
        for (std::uint16_t region = 0; region < 2; ++region)
          Attacker(port).send(
              {.secret = key, .rank = 1, .bytes = 64, .immediate = 7, .region = region});
    }
    me.meet();
    REQUIRE(me.heard() == 0, "a completion that no rank has sent");
    for (const WireRegion region : {WireRegion::Window, WireRegion::Bounce})
      for (const std::byte byte : me.memory(region)) REQUIRE(byte == Station::kBlank);
    me.meet();
    me.send({.peer = 1 - me.self(), .src = me.sources().data(), .bytes = 8, .immediate = 5});
    me.until("the peer's", [&] { return me.heard() == 1; });
    me.meet();
    REQUIRE(me.down.empty(), me.downText);
  });
}

// In what a rank tells, takes the sizes of its regions for twice as much.
void enlarge(std::vector<std::byte>* blob) {
  const std::uint64_t sizes[] = {Station::kWindowBytes, Station::kBounce};
  const auto bytes = std::as_bytes(std::span(sizes));
  const auto at = std::ranges::search(*blob, bytes);
  if (at.empty()) return;
  const std::uint64_t larger[] = {2 * sizes[0], 2 * sizes[1]};
  std::ranges::copy(std::as_bytes(std::span(larger)), at.begin());
}

// Rank 1 thinks that rank 0's memory is larger than it is.
Status makeMisled(const WireSetup& setup, std::unique_ptr<Wire>* out) {
  WireSetup misled = setup;
  misled.exchange = [&](std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) {
    WEFT_TRY(setup.exchange(mine, all));
    if (setup.rank == 1 && all != nullptr) enlarge(&(*all)[0]);
    return Status();
  };
  return ofi::makeOfiWire(misled, out);
}

TEST(Messages, OutsideOfTheMemoryAreRefused) {
  WireCase wire{{.name = "tcp", .processes = true, .wire = makeMisled}, "msg"};
  for (const WireRegion region : {WireRegion::Window, WireRegion::Bounce})
    runStations(wire, 2, [region](Station& me) {
      const std::uint64_t end =
          region == WireRegion::Window ? Station::kWindowBytes : Station::kBounce;
      me.meet();
      if (me.self() == 1)
        (void)me.attempt({.peer = 0,
                          .src = me.sources().data(),
                          .bytes = 100,
                          .region = region,
                          .target = end - 50,
                          .immediate = 3});
      if (me.self() == 0) {
        me.until("the end of the link", [&] { return me.down.contains(1); });
        REQUIRE(me.downText.find("rank 1") != std::string::npos, me.downText);
        REQUIRE(me.heard() == 0);
        for (const std::byte byte : me.memory(region)) REQUIRE(byte == Station::kBlank);
      }
      me.meet();
    });
}

constexpr transport::WindowLayout kApart{.ranks = 3,
                                         .arrivalSlots = 3,
                                         .pairArrivalSlots = 3,
                                         .apart = 1,
                                         .arenaBytes = 3 * 1024,
                                         .pairBytes = 3 * 1024};

Status makeApart(const WireSetup& setup, std::unique_ptr<Wire>* out) {
  WireSetup apart = setup;
  apart.layout = kApart;
  return ofi::makeOfiWire(apart, out);
}

// Rank 1 first writes into its own part of rank 0's memory, then into that of rank 2.
TEST(Messages, IntoAnotherRanksPartAreRefused) {
  WireCase wire{{.name = "tcp", .processes = true, .wire = makeApart}, "msg"};
  for (const auto& [region, part] : {std::pair(WireRegion::Window, std::uint64_t{1024}),
                                     std::pair(WireRegion::Bounce, std::uint64_t{64})})
    runStations(wire, 3, [region = region, part = part](Station& me) {
      const WireWrite write{.peer = 0,
                            .src = me.sources().data(),
                            .bytes = 64,
                            .region = region,
                            .target = part,
                            .immediate = 3};
      me.meet();
      if (me.self() == 1) {
        me.send(write);
        me.until("its answer", [&] { return me.unanswered() == 0; });
        WireWrite hostile = write;
        hostile.target = 2 * part;
        (void)me.attempt(hostile);
      }
      if (me.self() == 0) {
        me.until("the end of the link", [&] { return me.down.contains(1); });
        REQUIRE(me.downText.find("rank 1") != std::string::npos, me.downText);
        REQUIRE(me.down.size() == 1, "and of no other");
        REQUIRE(me.heard() == 1);
        for (const std::byte byte : me.memory(region).subspan(2 * part))
          REQUIRE(byte == Station::kBlank);
      }
      me.meet();
    });
}

}  // namespace
}  // namespace weft::wire
