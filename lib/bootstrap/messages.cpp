// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/messages.h"

#include "bootstrap/bytes.h"

namespace weft {
namespace {

constexpr std::size_t kMaxVerdictBytes = 8192;

// Text that will be shown: control characters could forge log lines.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

std::string label(ByteReader* reader, std::size_t limit) { return printable(reader->text(limit)); }

void writeCard(const RankCard& card, std::string_view config, ByteWriter* to) {
  to->text(card.host)
      .text(card.hostId)
      .number(card.pid)
      .number(card.startTime)
      .text(config)
      .blob(card.blob);
}

void readCard(ByteReader* from, RankCard* card) {
  card->host = label(from, kMaxHostBytes);
  card->hostId = label(from, kMaxHostBytes);
  card->pid = from->number<int>();
  card->startTime = from->number<std::uint64_t>();
  card->configText = label(from, kMaxConfigBytes);
  const ByteView blob = from->blob(kMaxBlobBytes);
  card->blob.assign(blob.begin(), blob.end());
}

}  // namespace

Bytes encode(const Hello& hello) {
  ByteWriter writer;
  writer.raw(hello.nonce).raw(hello.tag).number(hello.rank).number(hello.size);
  return writer.number(hello.wire.min).number(hello.wire.max).text(hello.version).take();
}

bool decode(ByteView bytes, Hello* hello) {
  ByteReader reader(bytes);
  reader.array(&hello->nonce);
  reader.array(&hello->tag);
  hello->rank = reader.number<std::int32_t>();
  hello->size = reader.number<std::int32_t>();
  hello->wire.min = reader.number<std::uint16_t>();
  hello->wire.max = reader.number<std::uint16_t>();
  hello->version = label(&reader, kMaxVersionBytes);
  return reader.done();
}

Bytes encode(const Challenge& challenge) {
  ByteWriter writer;
  return writer.raw(challenge.nonce)
      .raw(challenge.proof)
      .text(challenge.host)
      .number(challenge.pid)
      .take();
}

bool decode(ByteView bytes, Challenge* challenge) {
  ByteReader reader(bytes);
  reader.array(&challenge->nonce);
  reader.array(&challenge->proof);
  challenge->host = label(&reader, kMaxHostBytes);
  challenge->pid = reader.number<std::int32_t>();
  return reader.done();
}

Bytes encode(const CardMessage& message) {
  ByteWriter writer;
  writer.number(message.patienceMs);
  writeCard(message.card, message.card.configText, &writer);
  return writer.take();
}

bool decode(ByteView bytes, CardMessage* message) {
  ByteReader reader(bytes);
  message->patienceMs = reader.number<std::int64_t>();
  readCard(&reader, &message->card);
  return reader.done();
}

Bytes encode(const GatherMessage& message) {
  ByteWriter writer;
  return writer.number(message.round).number(message.patienceMs).blob(message.part).take();
}

bool decode(ByteView bytes, GatherMessage* message) {
  ByteReader reader(bytes);
  message->round = reader.number<std::uint32_t>();
  message->patienceMs = reader.number<std::int64_t>();
  const ByteView part = reader.blob(kMaxPartBytes);
  message->part.assign(part.begin(), part.end());
  return reader.done();
}

Bytes encode(const Status& error) {
  ByteWriter writer;
  const std::string_view text = error.text();
  return writer.number(static_cast<std::uint8_t>(error.code()))
      .text(text.substr(0, kMaxVerdictBytes))
      .take();
}

bool decode(ByteView bytes, Status* error) {
  ByteReader reader(bytes);
  const auto code = reader.number<std::uint8_t>();
  std::string text = label(&reader, kMaxVerdictBytes);
  const auto last = static_cast<std::uint8_t>(Code::LinkLost);
  *error = Status::error(code >= 1 && code <= last ? static_cast<Code>(code) : Code::RemoteError,
                         std::move(text));
  return reader.done();
}

Bytes encodeRoster(const std::vector<RankCard>& cards) {
  ByteWriter writer;
  for (const RankCard& card : cards) writeCard(card, "", &writer);
  return writer.take();
}

bool decodeRoster(ByteView bytes, std::size_t ranks, std::vector<RankCard>* cards) {
  ByteReader reader(bytes);
  cards->clear();
  for (std::size_t rank = 0; rank < ranks && reader.ok(); ++rank) {
    cards->emplace_back();
    cards->back().rank = static_cast<int>(rank);
    readCard(&reader, &cards->back());
  }
  return reader.done();
}

Bytes encodeParts(const std::vector<Bytes>& parts) {
  ByteWriter writer;
  for (const Bytes& part : parts) writer.blob(part);
  return writer.take();
}

bool decodeParts(ByteView bytes, std::size_t ranks, std::vector<Bytes>* parts) {
  ByteReader reader(bytes);
  parts->clear();
  for (std::size_t rank = 0; rank < ranks && reader.ok(); ++rank) {
    const ByteView part = reader.blob(kMaxPartBytes);
    parts->emplace_back(part.begin(), part.end());
  }
  return reader.done();
}

std::size_t maxRosterBytes(std::size_t ranks) {
  return ranks * (2 * kMaxHostBytes + kMaxConfigBytes + kMaxBlobBytes + 64);
}

std::size_t maxPartsBytes(std::size_t ranks) { return ranks * (kMaxPartBytes + 4); }

}  // namespace weft
