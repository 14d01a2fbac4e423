// SPDX-License-Identifier: Apache-2.0
// Bytes, messages, frames: everything that unauthenticated bytes reach.
#include <gtest/gtest.h>

#include <random>

#include "helpers.h"
#include "net/bytes.h"
#include "net/channel.h"

namespace weft::bootstrap {
namespace {

using test::expectHas;

TEST(Bytes, LittleEndianWhateverTheHost) {
  const net::Bytes bytes = net::ByteWriter()
                               .number<std::uint32_t>(0x01020304)
                               .number<std::int16_t>(-2)
                               .text("ab")
                               .take();
  const unsigned char expected[] = {4, 3, 2, 1, 0xfe, 0xff, 2, 0, 0, 0, 'a', 'b'};
  ASSERT_EQ(bytes.size(), sizeof expected);
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], std::byte{expected[i]}) << i;
}

TEST(Bytes, ReadingPastTheEndFailsForGood) {
  const net::Bytes bytes = net::ByteWriter().number<std::uint16_t>(7).take();
  net::ByteReader reader(bytes);
  EXPECT_EQ(reader.number<std::uint32_t>(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.number<std::uint8_t>(), 0u);
  EXPECT_FALSE(reader.done());
}

TEST(Bytes, LengthsAreCheckedBeforeUse) {
  const net::Bytes huge = net::ByteWriter().number<std::uint32_t>(0xffffffff).take();
  net::ByteReader reader(huge);
  EXPECT_EQ(reader.text(0xffffffff), "");
  EXPECT_FALSE(reader.ok());
  const net::Bytes fine = net::ByteWriter().text("four").take();
  net::ByteReader limited(fine);
  EXPECT_EQ(limited.text(3), "");
  EXPECT_FALSE(limited.ok());
}

const PeerName kName(3, "node\n7", 4711, "boot ns");
const InfoMessage kInfo{kName, "A=1;B=2", 1234};

TEST(Messages, InfoSurvivesAndCannotForgeLogLines) {
  InfoMessage after;
  ASSERT_TRUE(decode(encode(kInfo), &after));
  EXPECT_EQ(after.patienceMs, 1234);
  EXPECT_EQ(after.who.host, "node?7");
  EXPECT_EQ(after.who.hostId, "boot ns");
  EXPECT_EQ(after.who.pid, 4711);
  EXPECT_EQ(after.configText, "A=1;B=2");
}

TEST(Messages, CutAnywhereNothingDecodes) {
  const net::Bytes whole = encode(kInfo);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    InfoMessage after;
    EXPECT_FALSE(decode(net::ByteView(whole).first(size), &after)) << size;
  }
}

TEST(Messages, RosterOfTheWrongLengthDoesNotDecode) {
  const net::Bytes roster = encodeRoster({kName, kName});
  std::vector<PeerName> names;
  EXPECT_TRUE(decodeRoster(roster, 2, &names));
  EXPECT_EQ(names[1].rank, 1);
  EXPECT_FALSE(decodeRoster(roster, 3, &names));
  EXPECT_FALSE(decodeRoster(roster, 1, &names));
  EXPECT_LE(roster.size(), maxRosterBytes(2));
}

TEST(Messages, RandomBytesNeverDecodeToTooMuch) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    net::Bytes bytes(random() % 200);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    Hello hello;
    Challenge challenge;
    InfoMessage info;
    GatherMessage gather;
    Status status;
    (void)decode(bytes, &hello);
    (void)decode(bytes, &challenge);
    (void)decode(bytes, &info);
    (void)decode(bytes, &gather);
    (void)decode(bytes, &status);
    EXPECT_FALSE(status.ok());
    EXPECT_LE(info.configText.size(), bytes.size());
    EXPECT_LE(gather.part.size(), bytes.size());
  }
}

// Moves all bytes of one channel to another, `step` at a time, and collects the messages.
std::vector<net::Message> carry(net::Channel* from, net::Channel* to, std::size_t step,
                                Status* status) {
  std::vector<net::Message> messages;
  for (net::ByteView bytes = from->pending(); !bytes.empty() && status->ok();
       bytes = from->pending()) {
    const net::ByteView piece = bytes.first(std::min(step, bytes.size()));
    to->feed(piece);
    from->sent(piece.size());
    std::optional<net::Message> message;
    while ((*status = to->next(&message)).ok() && message) messages.push_back(std::move(*message));
  }
  return messages;
}

net::Bytes pattern(std::size_t size) {
  net::Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

struct SecurePair {
  net::Channel a, b;
  explicit SecurePair(std::size_t limit) {
    net::Key ab{}, ba{};
    ab.fill(std::byte{1});
    ba.fill(std::byte{2});
    a.secure(ab, ba, limit);
    b.secure(ba, ab, limit);
  }
};

TEST(Channel, MessagesOfAllSizesInAnyPieces) {
  for (std::size_t step : {1u, 7u, 4096u, 100000u}) {
    SecurePair pair(1 << 20);
    const std::size_t sizes[] = {0, 1, 65535, 65536, 65537, 200000};
    for (std::size_t size : sizes) {
      if (step == 1 && size > 65537) continue;
      pair.a.send(net::MessageType::Gather, pattern(size));
      Status status;
      const std::vector<net::Message> got = carry(&pair.a, &pair.b, step, &status);
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_EQ(got.size(), 1u);
      EXPECT_EQ(got[0].type, net::MessageType::Gather);
      EXPECT_TRUE(got[0].body == pattern(size)) << size;
    }
  }
}

net::Bytes frameOf(net::Channel* channel, net::MessageType type, std::size_t size) {
  channel->send(type, pattern(size));
  const net::ByteView pending = channel->pending();
  const net::Bytes frame(pending.begin(), pending.end());
  channel->sent(frame.size());
  return frame;
}

Status feedTo(net::Channel* channel, net::ByteView bytes) {
  std::optional<net::Message> message;
  channel->feed(bytes);
  Status status = channel->next(&message);
  return status;
}

TEST(Channel, EveryChangedBitOfASecureFrameIsNoticed) {
  SecurePair pair(1 << 20);
  const net::Bytes frame = frameOf(&pair.a, net::MessageType::Bye, 5);
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    SecurePair fresh(1 << 20);
    net::Bytes changed = frame;
    changed[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    std::optional<net::Message> message;
    fresh.b.feed(changed);
    const Status status = fresh.b.next(&message);
    // A longer length only makes it wait for more; nothing is ever delivered.
    EXPECT_FALSE(message.has_value()) << "bit " << bit;
    const bool lengthBit = bit / 8 >= 8 && bit / 8 < 12;
    EXPECT_TRUE(!status.ok() || lengthBit) << "bit " << bit;
  }
}

TEST(Channel, RepeatedAndSkippedFramesAreRefused) {
  SecurePair pair(1 << 20);
  const net::Bytes first = frameOf(&pair.a, net::MessageType::Gather, 5);
  const net::Bytes second = frameOf(&pair.a, net::MessageType::Gather, 5);
  EXPECT_TRUE(feedTo(&pair.b, first).ok());
  expectHas(feedTo(&pair.b, first).text(), "wrong MAC");
  SecurePair other(1 << 20);
  expectHas(feedTo(&other.b, second).text(), "wrong MAC");
}

TEST(Channel, AFrameIsNotGoodInTheOtherDirection) {
  SecurePair pair(1 << 20);
  EXPECT_FALSE(feedTo(&pair.a, frameOf(&pair.a, net::MessageType::Bye, 0)).ok());
}

TEST(Channel, OnlyAnEmptyRefusalInPlaceOfTheFirstFrameNeedsNoMac) {
  const auto plain = [](net::MessageType type, std::size_t size) {
    net::Channel channel;
    return frameOf(&channel, type, size);
  };
  std::optional<net::Message> message;
  SecurePair refused(1 << 20);
  refused.a.feed(plain(net::MessageType::Refusal, 0));
  ASSERT_TRUE(refused.a.next(&message).ok());
  ASSERT_TRUE(message);
  EXPECT_EQ(message->type, net::MessageType::Refusal);

  for (net::MessageType type :
       {net::MessageType::Welcome, net::MessageType::Refusal, net::MessageType::Error}) {
    net::Bytes unsealed = plain(type, type == net::MessageType::Refusal ? 20 : 0);
    unsealed.resize(unsealed.size() + 16);  // where a MAC would be
    SecurePair pair(1 << 20);
    EXPECT_FALSE(feedTo(&pair.a, unsealed).ok());
  }
  SecurePair later(1 << 20);
  ASSERT_TRUE(feedTo(&later.b, frameOf(&later.a, net::MessageType::Bye, 0)).ok());
  net::Bytes refusal = plain(net::MessageType::Refusal, 0);
  refusal.resize(refusal.size() + 16);
  EXPECT_FALSE(feedTo(&later.b, refusal).ok());
}

TEST(Channel, OversizeIsRefusedByItsHeader) {
  const auto header = [](std::uint32_t size, std::uint8_t flags) {
    return net::ByteWriter()
        .raw(net::bytesOf("WEFT"))
        .number<std::uint8_t>(1)
        .number<std::uint8_t>(1)
        .number(flags)
        .number<std::uint8_t>(0)
        .number(size)
        .take();
  };
  net::Channel before;
  EXPECT_TRUE(feedTo(&before, header(4096, 0)).ok());
  net::Channel longer;
  expectHas(feedTo(&longer, header(4097, 0)).text(), "4097 bytes, more than 4096");
  net::Channel parts;
  EXPECT_FALSE(feedTo(&parts, header(10, 1)).ok());
  SecurePair pair(1 << 20);
  EXPECT_TRUE(feedTo(&pair.a, header(65536, 0)).ok());
  EXPECT_FALSE(feedTo(&pair.b, header(65537, 0)).ok());
}

TEST(Channel, AMessageOfManyFramesIsBounded) {
  SecurePair pair(100000);
  pair.a.send(net::MessageType::Roster, pattern(100001));
  Status status;
  EXPECT_TRUE(carry(&pair.a, &pair.b, 1 << 16, &status).empty());
  expectHas(status.text(), "too long");
}

TEST(Channel, StrangersAreKnownByTheirFirstByte) {
  for (const char* said : {"GET / HTTP/1.1\r\n", "\x16\x03\x01", "W\n", "weft"}) {
    net::Channel channel;
    EXPECT_FALSE(feedTo(&channel, net::bytesOf(said)).ok()) << said;
  }
  net::Channel ours;
  EXPECT_TRUE(feedTo(&ours, net::bytesOf("WE")).ok());
}

TEST(Channel, RandomBytesNeverDeliver) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    SecurePair pair(1 << 20);
    net::Bytes bytes(random() % 300);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    const net::ByteView magic = net::bytesOf("WEFT\x01");
    if (bytes.size() > magic.size()) std::copy(magic.begin(), magic.end(), bytes.begin());
    std::optional<net::Message> message;
    pair.a.feed(bytes);
    (void)pair.a.next(&message);
    EXPECT_FALSE(message.has_value());
  }
}

}  // namespace
}  // namespace weft::bootstrap
