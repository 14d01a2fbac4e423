// SPDX-License-Identifier: Apache-2.0
#include "control/bodies.h"

#include <algorithm>

namespace weft::control {

net::Bytes encode(const PageReport& page) {
  net::ByteWriter writer;
  encode(page, &writer);
  return writer.take();
}

bool decode(net::ByteView bytes, PageReport* page) {
  net::ByteReader reader(bytes);
  *page = decodePage(&reader);
  return reader.done();
}

net::Bytes encode(const News& news) {
  net::ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(news.entries.size()));
  for (const News::Entry& entry : news.entries) {
    writer.number(entry.rank).number(entry.silenceMs);
    encode(entry.page, &writer);
  }
  return writer.take();
}

bool decode(net::ByteView bytes, std::size_t ranks, News* news) {
  net::ByteReader reader(bytes);
  const auto count = reader.number<std::uint32_t>();
  news->entries.clear();
  bool known = count <= ranks;
  for (std::uint32_t i = 0; i < count && known && reader.ok(); ++i) {
    News::Entry& entry = news->entries.emplace_back();
    entry.rank = reader.number<std::uint32_t>();
    entry.silenceMs = reader.number<std::uint32_t>();
    entry.page = decodePage(&reader);
    known = entry.rank < ranks;
  }
  return reader.done() && known;
}

net::Bytes encode(const Ending& ending) {
  return net::ByteWriter()
      .number(ending.rank)
      .text(pack(ending.why, transport::kFirstErrorBytes))
      .take();
}

bool decode(net::ByteView bytes, std::size_t ranks, Ending* ending) {
  net::ByteReader reader(bytes);
  ending->rank = reader.number<std::uint32_t>();
  const bool sound = unpack(reader.text(transport::kFirstErrorBytes), &ending->why);
  return reader.done() && sound && ending->rank < ranks;
}

net::Bytes encode(const Part& part) {
  net::ByteWriter writer;
  return writer.number(part.rank).number<std::uint8_t>(part.last).blob(part.bytes).take();
}

bool decode(net::ByteView bytes, std::size_t ranks, Part* part) {
  net::ByteReader reader(bytes);
  part->rank = reader.number<std::uint32_t>();
  part->last = reader.number<std::uint8_t>() != 0;
  const net::ByteView given = reader.blob(bootstrap::kMaxPartBytes);
  part->bytes.assign(given.begin(), given.end());
  return reader.done() && part->rank < ranks;
}

}  // namespace weft::control
