// SPDX-License-Identifier: Apache-2.0
// What all ranks hear when some of them fail in a set-up.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "transports/gather.h"

namespace weft::transport {
namespace {

// One rank for each of these, in turn; the result is the same for all.
Status gathered(const std::vector<Status>& ofRanks) {
  std::vector<std::vector<std::byte>> blobs, all;
  TransportSetup setup;
  setup.ranks = static_cast<std::uint32_t>(ofRanks.size());
  for (const Status& mine : ofRanks) {
    setup.exchange = [&](auto blob, auto*) -> Status {
      blobs.emplace_back(blob.begin(), blob.end());
      return Status::error(Code::Timeout, "only recorded");
    };
    (void)gatherBytes(setup, mine, {}, &all);
  }
  setup.exchange = [&](auto, auto* out) -> Status {
    *out = blobs;
    return {};
  };
  return gatherBytes(setup, ofRanks[0], {}, &all);
}

const Status kAccusation = Status::error(Code::RemoteError, "rank 2 has ended");
const Status kCause = Status::error(Code::SystemError, "no descriptors");

TEST(Records, AFieldWithoutAnEndEndsWithIt) {
  struct {
    char field[4] = {'a', 'b', 'c', 'd'};
    char next[4] = "xyz";
  } record;
  EXPECT_EQ(fieldText(record.field), "abcd");
  EXPECT_EQ(fieldText(record.next), "xyz");
}

TEST(Records, NoListIsMadeAsLongAsAnybodySays) {
  TransportSetup setup;
  setup.ranks = 1;
  setup.exchange = [](auto, auto* all) -> Status {
    *all = {std::vector<std::byte>(4, std::byte{0xff})};
    return {};
  };
  std::vector<std::vector<std::uint64_t>> lists;
  EXPECT_EQ(gatherLists<std::uint64_t>(setup, {}, {1}, &lists).code(), Code::Mismatch);
}

// An exchange carries no more than a part at once.
TEST(Records, LongListsTravelInParts) {
  constexpr std::uint32_t kRanks = 3;
  const std::array<std::uint32_t, kRanks> counts{10000, 0, 4097};
  const auto valueOf = [](std::uint32_t rank, std::uint64_t i) { return i << 8 | rank; };
  TransportSetup setup;
  setup.ranks = kRanks;
  std::size_t round = 0;
  setup.exchange = [&](auto mine, auto* all) -> Status {
    EXPECT_LE(mine.size(), kListPartBytes);
    all->clear();
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      std::vector<std::byte> blob(mine.size());
      if (round == 0) std::memcpy(blob.data(), &counts[rank], sizeof(counts[rank]));
      for (std::size_t i = 0; round != 0 && i < mine.size() / 8; ++i) {
        const std::uint64_t value = valueOf(rank, (round - 1) * (kListPartBytes / 8) + i);
        std::memcpy(blob.data() + 8 * i, &value, 8);
      }
      all->push_back(std::move(blob));
    }
    ++round;
    return {};
  };
  std::vector<std::vector<std::uint64_t>> lists;
  ASSERT_TRUE(gatherLists<std::uint64_t>(setup, {}, {7}, &lists).ok());
  EXPECT_EQ(round, 4u);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(lists[rank].size(), counts[rank]);
    for (std::uint64_t i = 0; i < counts[rank]; ++i) ASSERT_EQ(lists[rank][i], valueOf(rank, i));
  }
}

TEST(Gather, NobodyHasFailed) { EXPECT_TRUE(gathered({{}, {}, {}}).ok()); }

TEST(Gather, TheLowestRankIsHeard) {
  EXPECT_EQ(gathered({{}, kCause, Status::error(Code::OutOfMemory, "full")}).text(),
            "rank 1: no descriptors");
  EXPECT_EQ(gathered({{}, kAccusation, kAccusation}).text(), "rank 1: rank 2 has ended");
}

TEST(Gather, WhatARankSaysOfItselfGoesFirst) {
  EXPECT_EQ(gathered({kAccusation, kAccusation, kCause}).text(), "rank 2: no descriptors");
  EXPECT_EQ(gathered({kAccusation, kAccusation, kCause}).code(), Code::SystemError);
}

// An exchange that fails with this, for a rank that has come to that.
Status cutOff(const Status& exchange, const Status& mine) {
  TransportSetup setup;
  setup.ranks = 3;
  setup.exchange = [&](auto, auto*) { return exchange; };
  std::vector<std::vector<std::byte>> all;
  return gatherBytes(setup, mine, {}, &all);
}

TEST(Gather, WhoDiedIsKnownToTheExchange) {
  const Status death = Status::error(Code::RemoteError, "rank 1 died");
  EXPECT_EQ(cutOff(death, {}).text(), death.text());
  EXPECT_EQ(cutOff(death, kAccusation).text(), death.text());
  EXPECT_EQ(cutOff(death, kCause).text(), kCause.text());
  EXPECT_EQ(cutOff(Status::error(Code::Timeout, "no answer"), kAccusation).text(),
            kAccusation.text());
}

}  // namespace
}  // namespace weft::transport
