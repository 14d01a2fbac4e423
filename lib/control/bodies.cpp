// SPDX-License-Identifier: Apache-2.0
#include "control/bodies.h"

#include <algorithm>

namespace weft {

Bytes encode(const PageReport& page) {
  ByteWriter writer;
  encode(page, &writer);
  return writer.take();
}

bool decode(ByteView bytes, PageReport* page) {
  ByteReader reader(bytes);
  *page = decodePage(&reader);
  return reader.done();
}

Bytes encode(const News& news) {
  ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(news.entries.size()));
  for (const News::Entry& entry : news.entries) {
    writer.number(entry.rank).number(entry.silenceMs);
    encode(entry.page, &writer);
  }
  return writer.take();
}

bool decode(ByteView bytes, std::size_t ranks, News* news) {
  ByteReader reader(bytes);
  news->entries.resize(std::min<std::size_t>(reader.number<std::uint32_t>(), ranks));
  bool known = true;
  for (News::Entry& entry : news->entries) {
    entry.rank = reader.number<std::uint32_t>();
    entry.silenceMs = reader.number<std::uint32_t>();
    entry.page = decodePage(&reader);
    known = known && entry.rank < ranks;
  }
  return reader.done() && known;
}

Bytes encode(const Ending& ending) {
  return ByteWriter().number(ending.rank).text(ending.why).take();
}

bool decode(ByteView bytes, std::size_t ranks, Ending* ending) {
  ByteReader reader(bytes);
  ending->rank = reader.number<std::uint32_t>();
  ending->why = reader.text(kVerdictText);
  return reader.done() && ending->rank < ranks;
}

Bytes encode(const Part& part) {
  ByteWriter writer;
  return writer.number(part.rank).number<std::uint8_t>(part.last).blob(part.bytes).take();
}

bool decode(ByteView bytes, std::size_t ranks, Part* part) {
  ByteReader reader(bytes);
  part->rank = reader.number<std::uint32_t>();
  part->last = reader.number<std::uint8_t>() != 0;
  const ByteView given = reader.blob(kMaxPartBytes);
  part->bytes.assign(given.begin(), given.end());
  return reader.done() && part->rank < ranks;
}

}  // namespace weft
