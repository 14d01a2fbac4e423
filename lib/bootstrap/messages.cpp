// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/messages.h"

#include "bootstrap/table.h"
#include "net/bytes.h"

namespace weft::bootstrap {
namespace {

constexpr std::size_t kMaxErrorBytes = 8192;
constexpr std::size_t kMaxNameBytes = 2 * kMaxHostBytes + 16;  // as write() writes it

std::string label(net::ByteReader* reader, std::size_t limit) {
  return printable(reader->text(limit));
}

void write(const PeerName& name, net::ByteWriter* to) {
  to->text(name.host).text(name.hostId).number(name.pid);
}

void read(net::ByteReader* from, PeerName* name) {
  name->host = label(from, kMaxHostBytes);
  name->hostId = label(from, kMaxHostBytes);
  name->pid = from->number<int>();
}

}  // namespace

net::Bytes encode(const Hello& hello) {
  net::ByteWriter writer;
  writer.raw(hello.nonce).raw(hello.tag).number(hello.rank).number(hello.size);
  return writer.number(hello.wire.min).number(hello.wire.max).text(hello.version).take();
}

bool decode(net::ByteView bytes, Hello* hello) {
  net::ByteReader reader(bytes);
  reader.array(&hello->nonce);
  reader.array(&hello->tag);
  hello->rank = reader.number<std::int32_t>();
  hello->size = reader.number<std::int32_t>();
  hello->wire.min = reader.number<std::uint16_t>();
  hello->wire.max = reader.number<std::uint16_t>();
  hello->version = label(&reader, kMaxVersionBytes);
  return reader.done();
}

net::Bytes encode(const Challenge& challenge) {
  net::ByteWriter writer;
  return writer.raw(challenge.nonce)
      .raw(challenge.proof)
      .text(challenge.host)
      .number(challenge.pid)
      .take();
}

bool decode(net::ByteView bytes, Challenge* challenge) {
  net::ByteReader reader(bytes);
  reader.array(&challenge->nonce);
  reader.array(&challenge->proof);
  challenge->host = label(&reader, kMaxHostBytes);
  challenge->pid = reader.number<std::int32_t>();
  return reader.done();
}

net::Bytes encode(const InfoMessage& message) {
  net::ByteWriter writer;
  write(message.who, &writer);
  writer.text(message.configText).number(message.patienceMs);
  return writer.number(std::uint8_t{message.returns}).take();
}

bool decode(net::ByteView bytes, InfoMessage* message) {
  net::ByteReader reader(bytes);
  read(&reader, &message->who);
  message->configText = label(&reader, kMaxConfigBytes);
  message->patienceMs = reader.number<std::int64_t>();
  message->returns = reader.number<std::uint8_t>() != 0;
  return reader.done();
}

net::Bytes encode(const GatherMessage& message) {
  net::ByteWriter writer;
  return writer.number(message.round).number(message.patienceMs).blob(message.part).take();
}

bool decode(net::ByteView bytes, GatherMessage* message) {
  net::ByteReader reader(bytes);
  message->round = reader.number<std::uint32_t>();
  message->patienceMs = reader.number<std::int64_t>();
  const net::ByteView part = reader.blob(kMaxPartBytes);
  message->part.assign(part.begin(), part.end());
  return reader.done();
}

net::Bytes encode(const Status& error) {
  return net::ByteWriter().text(pack(error, kMaxErrorBytes)).take();
}

bool decode(net::ByteView bytes, Status* error) {
  net::ByteReader reader(bytes);
  const bool sound = unpack(reader.text(kMaxErrorBytes), error);
  return reader.done() && sound;
}

net::Bytes encodeRoster(const std::vector<PeerName>& names) {
  std::vector<net::Bytes> parts;
  for (const PeerName& name : names) {
    net::ByteWriter writer;
    write(name, &writer);
    parts.push_back(writer.take());
  }
  return encodeTable(parts);
}

bool decodeRoster(net::ByteView bytes, std::size_t ranks, std::vector<PeerName>* names) {
  std::vector<net::Bytes> parts;
  names->clear();
  if (!decodeTable(bytes, ranks, kMaxNameBytes, &parts)) return false;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    net::ByteReader reader(parts[rank]);
    names->emplace_back();
    names->back().rank = static_cast<int>(rank);
    read(&reader, &names->back());
    if (!reader.done()) return false;
  }
  return true;
}

net::Bytes encodeParts(const std::vector<net::Bytes>& parts) { return encodeTable(parts); }

bool decodeParts(net::ByteView bytes, std::size_t ranks, std::vector<net::Bytes>* parts) {
  return decodeTable(bytes, ranks, kMaxPartBytes, parts);
}

std::size_t maxRosterBytes(std::size_t ranks) {
  return maxTableBytes(ranks, ranks * kMaxNameBytes);
}

std::size_t maxPartsBytes(std::size_t ranks) { return maxTableBytes(ranks, ranks * kMaxPartBytes); }

}  // namespace weft::bootstrap
