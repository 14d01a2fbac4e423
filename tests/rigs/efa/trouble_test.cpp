// SPDX-License-Identifier: Apache-2.0
// What only a fake device can do to the wire over efa. Runs with it preloaded (../efa.sh).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/deadline.h"
#include "station.h"
#include "transports/ofi/ofi.h"

namespace weft::ofi {
namespace {

const transport::Fabric kEfa{.name = "efa", .processes = true, .wire = makeOfiWire};

int numberIn(const char* name, int usual) {
  const char* asked = std::getenv(name);
  return asked == nullptr ? usual : std::atoi(asked);
}
// How often each trouble is made, each time with another seed.
int repeats() { return numberIn("EFA_TROUBLE_REPEATS", 3); }
int firstSeed() { return numberIn("EFA_TROUBLE_FIRST", 1); }

void setNumber(const char* name, int value) { ::setenv(name, std::to_string(value).c_str(), 1); }

// Ranks 0 and 2 write to all; rank 1 fails at some time. They learn of it, or their deadline would
// (they write on until then), and then still reach each other.
void outlive(wire::Station& me, std::uint32_t peer) {
  const Deadline deadline = Deadline::in(20000);
  const std::size_t bytes = std::min<std::size_t>(me.wire().caps().maxWrite, 20000);
  while (!me.down.contains(1)) {
    REQUIRE(!deadline.expired(), "rank ", me.self(), " never hears that rank 1 is gone; ",
            me.unanswered(), " writes are open; ", me.wire().lastError().text());
    if (me.unanswered() < 8)
      (void)me.attempt({.peer = 1, .src = me.sources().data(), .bytes = bytes, .immediate = 1});
    me.poll();
  }
  REQUIRE(me.downText.find("rank 1 (host here") != std::string::npos, me.downText);
  REQUIRE(me.downText.find("efa_") != std::string::npos, me.downText);
  for (std::uint32_t i = 0; i < 30; ++i)
    me.send({.peer = peer, .src = me.sources().data(), .bytes = bytes, .immediate = 2000 + i});
  me.until("the other survivor", [&] {
    return std::ranges::count_if(me.completions, [](const auto& immediate) {
             return immediate.second >= 2000;
           }) == 30;
  });
  REQUIRE(me.down == std::set<std::uint32_t>{1}, me.downText);
  me.meet({0, 2});  // after it the other may be gone, too
}

// The rank whose device fails sees it, too, or at least neither crashes nor blocks.
void fade(wire::Station& me) {
  const Deadline deadline = Deadline::in(3000);
  for (std::uint32_t i = 0; me.down.size() < 2 && !deadline.expired(); ++i) {
    if (me.unanswered() < 8)
      (void)me.attempt({.peer = i % 2 * 2, .src = me.sources().data(), .bytes = 500});
    me.poll();
  }
}

// After so many of its sends, which differs by the seed.
void failRankOne(const char* knob, int least = 40) {
  for (int seed = firstSeed(); seed < firstSeed() + repeats(); ++seed) {
    const wire::Board board;
    transport::runAllWell(kEfa, 3, [&](transport::Rank& rank) {
      setNumber("FAKE_EFA_SEED", seed);
      if (rank.rank == 1) setNumber(knob, least + 37 * seed % (10 * least));
      wire::Station me(rank, board);
      me.self() == 1 ? fade(me) : outlive(me, 2 - me.self());
    });
    if (testing::Test::HasFailure()) GTEST_FAIL() << "seed " << seed;
  }
}

TEST(EfaTrouble, QueuePairDies) { failRankOne("FAKE_EFA_DIE_AFTER"); }
TEST(EfaTrouble, DeviceFallsSilent) { failRankOne("FAKE_EFA_MUTE_AFTER"); }
// Before it has heard what providers tell each other at first, which is nobody's operation.
TEST(EfaTrouble, DeviceFallsSilentAtItsFirstSends) { failRankOne("FAKE_EFA_MUTE_AFTER", 1); }

TEST(EfaTrouble, TooLittleLockedMemory) {
  transport::runAllWell(kEfa, 3, [&](transport::Rank& rank) {
    if (rank.rank == 2) setNumber("FAKE_EFA_MEMORY_KB", 64);
    wire::Station::Memory memory;
    std::unique_ptr<wire::Wire> wire;
    const Status status = wire::Station::makeWire(rank, memory, &wire);
    REQUIRE(!status.ok());
    for (const char* part : {"rank 2", "ulimit -l", "efa_"})
      REQUIRE(status.text().find(part) != std::string::npos, status.text());
  });
}

// All take the lesser provider if one of them has no better.
TEST(EfaTrouble, OneRankHasNoDevice) {
  transport::runAllWell(kEfa, 3, [&](transport::Rank& rank) {
    ::setenv("WEFT_OFI_PROVIDER", "auto", 1);
    if (rank.rank == 1) ::setenv("FAKE_EFA_DEVICES", "0", 1);
    wire::Station::Memory memory;
    std::unique_ptr<wire::Wire> wire;
    const Status status = wire::Station::makeWire(rank, memory, &wire);
    REQUIRE(status.ok(), status.text());
    const std::string where = wire->describe(rank.rank == 0 ? 1 : 0);
    REQUIRE(where.find("tcp;ofi_rxm") != std::string::npos, where);
    rank.barrier();
  });
}

}  // namespace
}  // namespace weft::ofi
