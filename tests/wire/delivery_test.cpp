// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "station.h"

namespace weft::wire {
namespace {

class Delivery : public testing::TestWithParam<WireCase> {};
INSTANTIATE_TEST_SUITE_P(Wires, Delivery, testing::ValuesIn(wiresUnderTest()),
                         testing::PrintToStringParamName());

std::byte patternOf(std::uint32_t from, std::uint32_t to, std::size_t at) {
  return static_cast<std::byte>(from * 31 + to * 17 + at * 7 + at / 251);
}

// Rank 0 writes, rank 1 looks when it has the completion.
TEST_P(Delivery, CompletionComesAfterAllBytes) {
  runStations(GetParam(), 2, [](Station& me) {
    const std::size_t most = std::min(me.wire().caps().maxWrite, me.sources().size());
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{64}, most}) {
      if (me.self() == 0) {
        for (std::size_t i = 0; i < bytes; ++i) me.sources()[i] = patternOf(0, 1, i + bytes);
        me.send({.peer = 1, .src = me.sources().data(), .bytes = bytes, .immediate = 0xdeadbeef});
      } else {
        me.until("a completion", [&] { return me.heard() != 0; });
        EXPECT_EQ(me.completions.back(), std::pair(0u, 0xdeadbeefu));
        for (std::size_t i = 0; i < bytes; ++i)
          REQUIRE(me.target()[i] == patternOf(0, 1, i + bytes), "byte ", i, " of ", bytes);
        REQUIRE(me.heard() == 1);
        me.completions.clear();
      }
      me.meet();
    }
  });
}

TEST_P(Delivery, NothingButImmediateData) {
  runStations(GetParam(), 3, [](Station& me) {
    const std::uint32_t next = (me.self() + 1) % 3;
    const std::uint32_t last = (me.self() + 2) % 3;
    for (const std::uint32_t immediate : {0u, 1u, 0x80000000u, 0xffffffffu}) {
      me.send({.peer = next, .immediate = immediate});
      me.until("a completion", [&] { return me.heard() != 0; });
      REQUIRE(me.completions[0] == std::pair(last, immediate), "got ", me.completions[0].second);
      me.completions.clear();
      me.meet();
    }
    for (const WireRegion region : {WireRegion::Window, WireRegion::Bounce})
      for (const std::byte byte : me.memory(region)) REQUIRE(byte == Station::kBlank);
  });
}

// Every rail, both regions, from all memory of this rank's wire.
TEST_P(Delivery, AllWaysLeadThere) {
  runStations(GetParam(), 2, [](Station& me) {
    const std::uint32_t peer = 1 - me.self();
    REQUIRE(me.wire().rails(peer) >= 1);
    REQUIRE(!me.wire().describe(peer).empty());
    constexpr std::size_t kBytes = 200;
    std::uint32_t sent = 0;
    for (std::uint32_t rail = 0; rail < me.wire().rails(peer); ++rail)
      for (const std::span<std::byte> from :
           {me.memory(WireRegion::Window), me.memory(WireRegion::Bounce), me.outgoing()})
        for (const WireRegion to : {WireRegion::Window, WireRegion::Bounce}) {
          const auto source = from.last(kBytes * (sent + 1)).first(kBytes);
          std::ranges::fill(source, static_cast<std::byte>(sent + 1));
          REQUIRE(me.wire().sendsFrom(source.data(), kBytes, 0));
          me.send({.peer = peer,
                   .rail = rail,
                   .src = source.data(),
                   .bytes = kBytes,
                   .region = to,
                   .target = kBytes * sent,
                   .immediate = sent});
          ++sent;
        }
    me.until("all completions", [&] { return me.heard() == sent; });
    for (const auto& [from, immediate] : me.completions) {
      const auto region = immediate % 2 == 0 ? WireRegion::Window : WireRegion::Bounce;
      for (const std::byte byte : me.memory(region).subspan(kBytes * immediate, kBytes))
        REQUIRE(byte == static_cast<std::byte>(immediate + 1), "write ", immediate);
    }
    me.meet();
  });
}

// More at once than any queue holds; each completion exactly once.
TEST_P(Delivery, ManySmallFromAllToAll) {
  constexpr std::uint32_t kEach = 400;
  runStations(GetParam(), 4, [](Station& me) {
    for (std::uint32_t i = 0; i < kEach; ++i)
      for (std::uint32_t peer = 0; peer < me.ranks(); ++peer) {
        if (peer == me.self()) continue;
        std::byte* source = me.sources().data() + (i * 4 + peer) * 8;
        std::memcpy(source, &i, sizeof(i));
        me.send({.peer = peer,
                 .src = source,
                 .bytes = 8,
                 .target = (me.self() * kEach + i) * 8,
                 .immediate = i});
      }
    me.until("all completions", [&] { return me.heard() == 3 * kEach; });
    std::ranges::sort(me.completions);
    REQUIRE(std::ranges::adjacent_find(me.completions) == me.completions.end(),
            "a completion came twice");
    for (const auto& [from, immediate] : me.completions) {
      std::uint32_t value = 0;
      std::memcpy(&value, me.target().data() + (from * kEach + immediate) * 8, sizeof(value));
      REQUIRE(value == immediate);
    }
    me.meet();
  });
}

// Without polling until the wire says Again or the allowance is used up: then all completes.
TEST_P(Delivery, FloodEndsInAgainAndCompletes) {
  runStations(GetParam(), 2, [](Station& me) {
    const std::size_t bytes = std::min<std::size_t>(me.wire().caps().maxWrite, 16384);
    std::uint32_t sent = 0;
    for (int round = 0; round < 10 && me.self() == 0; ++round) {
      while (me.trySend({.peer = 1, .src = me.sources().data(), .bytes = bytes, .immediate = sent}))
        ++sent;
      me.until("answers", [&] { return me.unanswered() == 0; });
    }
    me.send({.peer = 1 - me.self(), .immediate = 1000000 + sent});
    const auto last = [&] {
      const auto at = std::ranges::find_if(
          me.completions, [](const auto& immediate) { return immediate.second >= 1000000; });
      return at == me.completions.end() ? ~0u : at->second - 1000000;
    };
    me.until("the count, and all", [&] { return last() == me.heard() - 1; });
    REQUIRE(me.self() == 1 || sent >= 10);
    me.meet();
  });
}

struct Piece {
  std::size_t at, bytes;
};

// A lane of memory cut into pieces, some of them written, in random order. Sender and receiver draw
// the same.
std::vector<Piece> cut(std::mt19937& random, std::size_t lane, std::size_t maxWrite) {
  std::vector<Piece> pieces;
  for (std::size_t at = 0; at < lane;) {
    const std::size_t sizes[] = {
        0, 1, 3, 63, 64, 65, 4095, 4096, 4097, random() % 20000, random() % 60000};
    const std::size_t bytes = std::min({sizes[random() % std::size(sizes)], lane - at, maxWrite});
    if (random() % 4 != 0) pieces.push_back({at, bytes});
    at += std::max<std::size_t>(bytes, random() % 5);
    if (pieces.size() == 60) break;
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  return pieces;
}

void checkLane(Station& me, std::uint32_t from, std::size_t lane, std::uint32_t seed) {
  std::mt19937 random(seed * 64 + from * 8 + me.self());
  std::vector<std::byte> expected(lane, Station::kBlank);
  for (const Piece& piece : cut(random, lane, me.wire().caps().maxWrite))
    for (std::size_t i = 0; i < piece.bytes; ++i)
      expected[piece.at + i] = patternOf(from, me.self(), piece.at + i);
  const auto got = me.target().subspan(from * lane, lane);
  const auto at = std::ranges::mismatch(got, expected).in1 - got.begin();
  REQUIRE(at == static_cast<std::ptrdiff_t>(lane), "seed ", seed, ", from ", from, ", byte ", at);
  std::ranges::fill(got, Station::kBlank);
}

// Random sizes to random places on random rails: all bytes of all writes, and no other byte.
TEST_P(Delivery, RandomWritesAndNothingElse) {
  runStations(GetParam(), 4, [](Station& me) {
    const std::size_t lane = me.target().size() / me.ranks() / 2;
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
      std::size_t expected = 0;
      for (std::uint32_t peer = 0; peer < me.ranks(); ++peer) {
        if (peer == me.self()) continue;
        std::mt19937 theirs(seed * 64 + peer * 8 + me.self());
        expected += cut(theirs, lane, me.wire().caps().maxWrite).size();
        std::mt19937 random(seed * 64 + me.self() * 8 + peer);
        std::byte* source = me.sources().data() + peer * lane;
        for (std::size_t i = 0; i < lane; ++i) source[i] = patternOf(me.self(), peer, i);
        for (const Piece& piece : cut(random, lane, me.wire().caps().maxWrite))
          me.send({.peer = peer,
                   .rail = static_cast<std::uint32_t>(random() % me.wire().rails(peer)),
                   .src = source + piece.at,
                   .bytes = piece.bytes,
                   .target = me.self() * lane + piece.at,
                   .immediate = static_cast<std::uint32_t>(piece.at)});
      }
      me.until("all completions", [&] { return me.heard() == expected; });
      for (std::uint32_t peer = 0; peer < me.ranks(); ++peer)
        if (peer != me.self()) checkLane(me, peer, lane, seed);
      for (const std::byte byte : me.target()) REQUIRE(byte == Station::kBlank, "seed ", seed);
      for (const std::byte byte : me.memory(WireRegion::Bounce)) REQUIRE(byte == Station::kBlank);
      me.completions.clear();
      me.meet();
    }
  });
}

}  // namespace
}  // namespace weft::wire
