// SPDX-License-Identifier: Apache-2.0
// Where the payload of a message goes: nowhere but into its sender's part of the region that it names.
#include "transports/ofi/message.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::ofi {
namespace {

class OfiMessage : public testing::Test {
 protected:
  bool fits(std::uint16_t region, std::uint64_t target, std::uint32_t bytes, std::size_t payload) {
    const Header header{.bytes = bytes, .target = target, .region = region};
    return placeOf(header, sizeof(Header) + payload, regions_, {}, header.rank).data() != nullptr;
  }
  std::vector<std::byte> window_ = std::vector<std::byte>(100),
                         bounce_ = std::vector<std::byte>(50),
                         outgoing_ = std::vector<std::byte>(50);
  std::vector<std::span<std::byte>> regions_{window_, bounce_, outgoing_};
};

TEST_F(OfiMessage, FitsToTheLastByte) {
  EXPECT_TRUE(fits(0, 0, 100, 100));
  EXPECT_TRUE(fits(1, 49, 1, 1));
  EXPECT_TRUE(fits(0, 100, 0, 0));
}

TEST_F(OfiMessage, GoesNowhereElse) {
  EXPECT_FALSE(fits(2, 0, 1, 1)) << "what this rank sends from";
  EXPECT_FALSE(fits(3, 0, 1, 1)) << "no such region";
  EXPECT_FALSE(fits(0, 100, 1, 1)) << "behind it";
  EXPECT_FALSE(fits(1, 0, 51, 51)) << "longer than it";
  EXPECT_FALSE(fits(0, ~std::uint64_t{0}, 1, 1)) << "around the end of all memory";
  EXPECT_FALSE(fits(0, 0, 2, 1)) << "says more than has come";
  EXPECT_FALSE(fits(0, 0, 0, 1)) << "says less";
}

// Three ranks; of every lane's arena 128 bytes each, of those for messages between two 256.
class OfiMessageOfRank : public testing::TestWithParam<std::uint32_t> {
 protected:
  static constexpr transport::WindowLayout kLayout{.ranks = 3,
                                                   .arrivalSlots = 6,
                                                   .pairArrivalSlots = 12,
                                                   .apart = 1,
                                                   .arenaBytes = 3 * 128 + 64,
                                                   .pairBytes = 3 * 256};
  static constexpr std::uint64_t kLine = transport::kLine;
  static constexpr std::uint64_t kPairArena = transport::kMaxLanes * kLayout.arenaBytes;
  static constexpr std::uint64_t kPairRecords = transport::kMaxLanes * 6 * kLine;

  // Who may send so many bytes for there? A bit each.
  std::uint32_t writers(std::uint16_t region, std::uint64_t target, std::uint32_t bytes) {
    std::uint32_t found = 0;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const Header header{.rank = rank, .bytes = bytes, .target = target, .region = region};
      if (placeOf(header, sizeof(Header) + bytes, regions_, kLayout, header.rank).data() != nullptr)
        found |= 1u << rank;
    }
    return found;
  }
  std::vector<std::byte> window_ = std::vector<std::byte>(kPairArena + kLayout.pairBytes),
                         bounce_ = std::vector<std::byte>(kPairRecords + 12 * kLine);
  std::vector<std::span<std::byte>> regions_{window_, bounce_};
};
INSTANTIATE_TEST_SUITE_P(Ranks, OfiMessageOfRank, testing::Range(0u, 3u));

TEST_P(OfiMessageOfRank, MayGoIntoItsStaging) {
  const std::uint32_t rank = GetParam(), alone = 1u << rank;
  for (std::uint64_t lane = 0; lane < transport::kMaxLanes; ++lane) {
    const std::uint64_t at = lane * kLayout.arenaBytes + rank * 128;
    EXPECT_EQ(writers(0, at, 128), alone);
    EXPECT_EQ(writers(0, at + 127, 1), alone);
    EXPECT_EQ(writers(0, at + 127, 2), 0u) << "ends in the next one's";
    EXPECT_EQ(writers(0, at, 129), 0u);
    EXPECT_EQ(writers(0, lane * kLayout.arenaBytes + 3 * 128, 1), 0u) << "left over";
  }
  EXPECT_EQ(writers(0, kPairArena + rank * 256, 256), alone);
  EXPECT_EQ(writers(0, kPairArena + rank * 256 + 1, 256), 0u);
  EXPECT_EQ(writers(0, rank * 128, kLayout.arenaBytes + 1), 0u) << "from one lane to the next";
  EXPECT_EQ(writers(0, rank, 0), 7u) << "immediate data alone";
}

TEST_P(OfiMessageOfRank, MayGoIntoItsRecords) {
  const std::uint32_t rank = GetParam(), alone = 1u << rank;
  for (std::uint64_t lane = 0; lane < transport::kMaxLanes; ++lane)
    for (std::uint64_t k = 0; k < 2; ++k)
      EXPECT_EQ(writers(1, (lane * 6 + rank * 2 + k) * kLine, 64), alone);
  EXPECT_EQ(writers(1, rank * 2 * kLine, 7 * kLine), 0u) << "from one lane to the next";
  for (std::uint64_t k = 0; k < 4; ++k)
    EXPECT_EQ(writers(1, kPairRecords + (rank * 4 + k) * kLine, 64), alone);
  EXPECT_EQ(writers(1, (rank * 2 + 1) * kLine + 1, 64), 0u) << "ends in the next one's";
}

TEST_F(OfiMessage, HasAWholeHeader) {
  Header header, read;
  header.secret = 42;
  const auto bytes = std::as_bytes(std::span(&header, 1));
  EXPECT_TRUE(readHeader(bytes, 42, &read));
  EXPECT_FALSE(readHeader(bytes.first(sizeof(Header) - 1), 42, &read));
  EXPECT_FALSE(readHeader({}, 42, &read));
}

}  // namespace
}  // namespace weft::ofi
