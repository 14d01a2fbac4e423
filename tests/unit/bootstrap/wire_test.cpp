// SPDX-License-Identifier: Apache-2.0
// Bytes, messages, frames: everything that a stranger's bytes reach.
#include <gtest/gtest.h>

#include <random>

#include "bootstrap/bytes.h"
#include "bootstrap/channel.h"
#include "helpers.h"

namespace weft {
namespace {

using test::expectHas;

TEST(Bytes, LittleEndianWhateverTheHost) {
  const Bytes bytes =
      ByteWriter().number<std::uint32_t>(0x01020304).number<std::int16_t>(-2).text("ab").take();
  const unsigned char expected[] = {4, 3, 2, 1, 0xfe, 0xff, 2, 0, 0, 0, 'a', 'b'};
  ASSERT_EQ(bytes.size(), sizeof expected);
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], std::byte{expected[i]}) << i;
}

TEST(Bytes, ReadingPastTheEndFailsForGood) {
  const Bytes bytes = ByteWriter().number<std::uint16_t>(7).take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.number<std::uint32_t>(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.number<std::uint8_t>(), 0u);
  EXPECT_FALSE(reader.done());
}

TEST(Bytes, LengthsAreCheckedBeforeUse) {
  const Bytes huge = ByteWriter().number<std::uint32_t>(0xffffffff).take();
  ByteReader reader(huge);
  EXPECT_EQ(reader.text(0xffffffff), "");
  EXPECT_FALSE(reader.ok());
  const Bytes fine = ByteWriter().text("four").take();
  ByteReader limited(fine);
  EXPECT_EQ(limited.text(3), "");
  EXPECT_FALSE(limited.ok());
}

RankCard exampleCard() {
  RankCard card;
  card.rank = 3;
  card.host = "node\n7";
  card.hostId = "boot ns";
  card.pid = 4711;
  card.startTime = 99;
  card.configText = "A=1;B=2";
  card.blob.assign(100, std::byte{5});
  return card;
}

TEST(Messages, CardSurvivesAndCannotForgeLogLines) {
  CardMessage after;
  ASSERT_TRUE(decode(encode(CardMessage{exampleCard(), 1234}), &after));
  EXPECT_EQ(after.patienceMs, 1234);
  EXPECT_EQ(after.card.host, "node?7");
  EXPECT_EQ(after.card.pid, 4711);
  EXPECT_EQ(after.card.startTime, 99u);
  EXPECT_EQ(after.card.configText, "A=1;B=2");
  EXPECT_EQ(after.card.blob, exampleCard().blob);
}

TEST(Messages, CutAnywhereNothingDecodes) {
  const Bytes whole = encode(CardMessage{exampleCard(), 1234});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CardMessage after;
    EXPECT_FALSE(decode(ByteView(whole).first(size), &after)) << size;
  }
}

TEST(Messages, RosterOfTheWrongLengthDoesNotDecode) {
  const Bytes roster = encodeRoster({exampleCard(), exampleCard()});
  std::vector<RankCard> cards;
  EXPECT_TRUE(decodeRoster(roster, 2, &cards));
  EXPECT_EQ(cards[1].rank, 1);
  EXPECT_FALSE(decodeRoster(roster, 3, &cards));
  EXPECT_FALSE(decodeRoster(roster, 1, &cards));
  EXPECT_LE(roster.size(), maxRosterBytes(2));
}

TEST(Messages, RandomBytesNeverDecodeToTooMuch) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes(random() % 200);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    Hello hello;
    Challenge challenge;
    CardMessage card;
    GatherMessage gather;
    Status status;
    (void)decode(bytes, &hello);
    (void)decode(bytes, &challenge);
    (void)decode(bytes, &card);
    (void)decode(bytes, &gather);
    (void)decode(bytes, &status);
    EXPECT_FALSE(status.ok());
    EXPECT_LE(card.card.blob.size(), bytes.size());
    EXPECT_LE(gather.part.size(), bytes.size());
  }
}

// Moves all bytes of one channel to another, `step` at a time, and collects the messages.
std::vector<Message> carry(Channel* from, Channel* to, std::size_t step, Status* status) {
  std::vector<Message> messages;
  for (ByteView bytes = from->pending(); !bytes.empty() && status->ok(); bytes = from->pending()) {
    const ByteView piece = bytes.first(std::min(step, bytes.size()));
    to->feed(piece);
    from->sent(piece.size());
    std::optional<Message> message;
    while ((*status = to->next(&message)).ok() && message) messages.push_back(std::move(*message));
  }
  return messages;
}

Bytes pattern(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

struct SecurePair {
  Channel a, b;
  explicit SecurePair(std::size_t limit) {
    Key ab{}, ba{};
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
      pair.a.send(MessageType::Gather, pattern(size));
      Status status;
      const std::vector<Message> got = carry(&pair.a, &pair.b, step, &status);
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_EQ(got.size(), 1u);
      EXPECT_EQ(got[0].type, MessageType::Gather);
      EXPECT_TRUE(got[0].body == pattern(size)) << size;
    }
  }
}

Bytes frameOf(Channel* channel, MessageType type, std::size_t size) {
  channel->send(type, pattern(size));
  const ByteView pending = channel->pending();
  const Bytes frame(pending.begin(), pending.end());
  channel->sent(frame.size());
  return frame;
}

Status feedTo(Channel* channel, ByteView bytes) {
  std::optional<Message> message;
  channel->feed(bytes);
  Status status = channel->next(&message);
  return status;
}

TEST(Channel, EveryChangedBitOfASecureFrameIsNoticed) {
  SecurePair pair(1 << 20);
  const Bytes frame = frameOf(&pair.a, MessageType::Bye, 5);
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    SecurePair fresh(1 << 20);
    Bytes changed = frame;
    changed[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    std::optional<Message> message;
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
  const Bytes first = frameOf(&pair.a, MessageType::Gather, 5);
  const Bytes second = frameOf(&pair.a, MessageType::Gather, 5);
  EXPECT_TRUE(feedTo(&pair.b, first).ok());
  expectHas(feedTo(&pair.b, first).text(), "wrong MAC");
  SecurePair other(1 << 20);
  expectHas(feedTo(&other.b, second).text(), "wrong MAC");
}

TEST(Channel, AFrameIsNotGoodInTheOtherDirection) {
  SecurePair pair(1 << 20);
  EXPECT_FALSE(feedTo(&pair.a, frameOf(&pair.a, MessageType::Bye, 0)).ok());
}

TEST(Channel, OnlyAnEmptyRefusalInPlaceOfTheFirstFrameNeedsNoMac) {
  const auto plain = [](MessageType type, std::size_t size) {
    Channel channel;
    return frameOf(&channel, type, size);
  };
  std::optional<Message> message;
  SecurePair refused(1 << 20);
  refused.a.feed(plain(MessageType::Refusal, 0));
  ASSERT_TRUE(refused.a.next(&message).ok());
  ASSERT_TRUE(message);
  EXPECT_EQ(message->type, MessageType::Refusal);

  for (MessageType type : {MessageType::Welcome, MessageType::Refusal, MessageType::Verdict}) {
    Bytes unsealed = plain(type, type == MessageType::Refusal ? 20 : 0);
    unsealed.resize(unsealed.size() + 16);  // where a MAC would be
    SecurePair pair(1 << 20);
    EXPECT_FALSE(feedTo(&pair.a, unsealed).ok());
  }
  SecurePair later(1 << 20);
  ASSERT_TRUE(feedTo(&later.b, frameOf(&later.a, MessageType::Bye, 0)).ok());
  Bytes refusal = plain(MessageType::Refusal, 0);
  refusal.resize(refusal.size() + 16);
  EXPECT_FALSE(feedTo(&later.b, refusal).ok());
}

TEST(Channel, OversizeIsRefusedByItsHeader) {
  const auto header = [](std::uint32_t size, std::uint8_t flags) {
    return ByteWriter()
        .raw(bytesOf("WEFT"))
        .number<std::uint8_t>(1)
        .number<std::uint8_t>(1)
        .number(flags)
        .number<std::uint8_t>(0)
        .number(size)
        .take();
  };
  Channel before;
  EXPECT_TRUE(feedTo(&before, header(4096, 0)).ok());
  Channel longer;
  expectHas(feedTo(&longer, header(4097, 0)).text(), "4097 bytes, more than 4096");
  Channel parts;
  EXPECT_FALSE(feedTo(&parts, header(10, 1)).ok());
  SecurePair pair(1 << 20);
  EXPECT_TRUE(feedTo(&pair.a, header(65536, 0)).ok());
  EXPECT_FALSE(feedTo(&pair.b, header(65537, 0)).ok());
}

TEST(Channel, AMessageOfManyFramesIsBounded) {
  SecurePair pair(100000);
  pair.a.send(MessageType::Roster, pattern(100001));
  Status status;
  EXPECT_TRUE(carry(&pair.a, &pair.b, 1 << 16, &status).empty());
  expectHas(status.text(), "too long");
}

TEST(Channel, StrangersAreKnownByTheirFirstByte) {
  for (const char* said : {"GET / HTTP/1.1\r\n", "\x16\x03\x01", "W\n", "weft"}) {
    Channel channel;
    EXPECT_FALSE(feedTo(&channel, bytesOf(said)).ok()) << said;
  }
  Channel ours;
  EXPECT_TRUE(feedTo(&ours, bytesOf("WE")).ok());
}

TEST(Channel, RandomBytesNeverDeliver) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    SecurePair pair(1 << 20);
    Bytes bytes(random() % 300);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    const ByteView magic = bytesOf("WEFT\x01");
    if (bytes.size() > magic.size()) std::copy(magic.begin(), magic.end(), bytes.begin());
    std::optional<Message> message;
    pair.a.feed(bytes);
    (void)pair.a.next(&message);
    EXPECT_FALSE(message.has_value());
  }
}

}  // namespace
}  // namespace weft
