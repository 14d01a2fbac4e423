// SPDX-License-Identifier: Apache-2.0
// The table that the root sends to all ranks: as small as what differs, and exact.
#include "bootstrap/table.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"
#include "bootstrap/messages.h"
#include "net/bytes.h"

namespace weft::bootstrap {
namespace {

constexpr std::size_t kMost = 4096;

void expectExact(const std::vector<net::Bytes>& parts) {
  std::size_t bytes = 0;
  for (const net::Bytes& part : parts) bytes += part.size();
  const net::Bytes table = encodeTable(parts);
  EXPECT_LE(table.size(), maxTableBytes(parts.size(), bytes));
  std::vector<net::Bytes> read;
  ASSERT_TRUE(decodeTable(table, parts.size(), kMost, &read));
  EXPECT_EQ(read, parts);
  EXPECT_FALSE(decodeTable(table, parts.size() + 1, kMost, &read));
}

TEST(Table, IsExactWhateverDiffers) {
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::vector<net::Bytes> parts(1 + random() % 8);
    net::Bytes last(random() % 40);
    for (net::Bytes& part : parts) {
      if (random() % 3 == 0) last.resize(random() % 40);
      for (std::size_t change = random() % 4; change > 0 && !last.empty(); --change)
        last[random() % last.size()] = static_cast<std::byte>(random() % 3);
      part = last;
    }
    expectExact(parts);
  }
}

TEST(Table, WhatIsCutOrTooLongIsRefused) {
  const std::vector<net::Bytes> parts{
      net::Bytes(9, std::byte{1}), net::Bytes(12, std::byte{1}), {}};
  const net::Bytes table = encodeTable(parts);
  std::vector<net::Bytes> read;
  ASSERT_TRUE(decodeTable(table, 3, 12, &read));
  EXPECT_FALSE(decodeTable(table, 3, 11, &read));
  for (std::size_t n = 0; n < table.size(); ++n)
    EXPECT_FALSE(decodeTable(net::ByteView(table).first(n), 3, 12, &read)) << n;
}

TEST(Table, NoiseIsRefusedOrHarmless) {
  std::mt19937 random(1);
  for (int i = 0; i < 50000; ++i) {
    net::Bytes bytes(random() % 60);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 12);
    std::vector<net::Bytes> read;
    if (!decodeTable(bytes, 3, 64, &read)) continue;
    for (const net::Bytes& part : read) EXPECT_LE(part.size(), 64u);
  }
}

// What ranks give at creation, as 1,024 of 128 hosts would.
constexpr std::uint32_t kRanks = 1024, kHosts = 128;
std::uint32_t hostOf(std::uint32_t rank) { return rank / (kRanks / kHosts); }

TEST(Table, NamesTakeThePidOfARankAndTheIdOfAHost) {
  std::vector<PeerName> names, read;
  std::mt19937_64 random(1);
  std::string id;
  std::size_t apart = 0;
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    if (r % (kRanks / kHosts) == 0) id = text(random(), random(), " net:[4026531840]");
    names.push_back({static_cast<int>(r), text("ip-172-31-", hostOf(r), "-17.ec2.internal"),
                     static_cast<int>(2000 + random() % 60000), id});
    apart += encodeRoster({names.back()}).size();
  }
  const net::Bytes roster = encodeRoster(names);
  ASSERT_TRUE(decodeRoster(roster, kRanks, &read));
  EXPECT_EQ(read, names);
  EXPECT_LE(5 * roster.size(), apart) << roster.size() / kRanks << " bytes a rank";
}

// An endpoint's address, and a rank's cores with a calibration that rank 0 alone has.
TEST(Table, RecordsTakeWhatDiffers) {
  std::mt19937 random(1);
  std::vector<net::Bytes> addresses, offers;
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    addresses.push_back(net::ByteWriter()
                            .number<std::uint16_t>(2)
                            .number(static_cast<std::uint16_t>(random()))
                            .number(0x0a000000u + hostOf(r))
                            .take());
    addresses.back().resize(300);
    offers.emplace_back(2600, std::byte{0});
    offers.back()[r % 8] = std::byte{255};
    for (std::size_t i = 200; r == 0 && i < 2600; ++i)
      offers.back()[i] = static_cast<std::byte>(random());
  }
  expectExact(addresses);
  expectExact(offers);
  EXPECT_LE(encodeTable(addresses).size(), 12 * kRanks);
  EXPECT_LE(encodeTable(offers).size(), 2600 + 16 * kRanks);
}

}  // namespace
}  // namespace weft::bootstrap
