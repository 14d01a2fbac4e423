// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/table.h"

#include <algorithm>
#include <utility>

#include "net/bytes.h"

namespace weft::bootstrap {
namespace {

// Fewer equal bytes in between are not worth two numbers.
constexpr std::size_t kWorth = 4;

std::size_t equalFrom(net::ByteView part, net::ByteView before, std::size_t at) {
  const std::size_t end = std::min(part.size(), before.size());
  std::size_t to = at;
  while (to < end && part[to] == before[to]) ++to;
  return to - at;
}

// How many bytes from there on are better sent.
std::size_t othersFrom(net::ByteView part, net::ByteView before, std::size_t at) {
  for (std::size_t to = at; to < part.size(); ++to)
    if (const std::size_t equal = equalFrom(part, before, to);
        equal >= kWorth || to + equal == part.size())
      return to - at;
    else
      to += equal;
  return part.size() - at;
}

void encodePart(net::ByteView part, net::ByteView before, net::ByteWriter* to) {
  if (std::ranges::equal(part, before)) {
    to->small(0);
    return;
  }
  to->small(1 + part.size());
  for (std::size_t at = 0; at < part.size();) {
    const std::size_t equal = equalFrom(part, before, at);
    const std::size_t others = othersFrom(part, before, at + equal);
    to->small(equal).small(others).raw(part.subspan(at + equal, others));
    at += equal + others;
  }
}

bool decodePart(net::ByteReader* from, std::size_t maxPart, net::ByteView before,
                net::Bytes* part) {
  const std::size_t head = from->small<std::uint32_t>();
  if (head == 0) {
    part->assign(before.begin(), before.end());
    return from->ok();
  }
  const std::size_t size = head - 1;
  if (size > maxPart) return false;
  while (part->size() < size && from->ok()) {
    const std::size_t equal = from->small<std::uint32_t>(), others = from->small<std::uint32_t>();
    const std::size_t at = part->size();
    if (equal + others == 0 || equal + others > size - at) return false;
    if (equal != 0 && at + equal > before.size()) return false;
    const net::ByteView same = before.subspan(std::min(at, before.size()), equal);
    part->insert(part->end(), same.begin(), same.end());
    const net::ByteView raw = from->raw(others);
    part->insert(part->end(), raw.begin(), raw.end());
  }
  return from->ok();
}

}  // namespace

net::Bytes encodeTable(const std::vector<net::Bytes>& parts) {
  net::ByteWriter writer;
  net::ByteView before;
  for (const net::Bytes& part : parts) encodePart(part, std::exchange(before, part), &writer);
  return writer.take();
}

bool decodeTable(net::ByteView bytes, std::size_t parts, std::size_t maxPart,
                 std::vector<net::Bytes>* out) {
  net::ByteReader reader(bytes);
  out->clear();
  for (std::size_t i = 0; i < parts; ++i) {
    net::Bytes part;
    const net::ByteView before = out->empty() ? net::ByteView() : net::ByteView(out->back());
    if (!decodePart(&reader, maxPart, before, &part)) return false;
    out->push_back(std::move(part));
  }
  return reader.done();
}

// The first two numbers of a part may be for nothing; all others are for kWorth bytes at least.
std::size_t maxTableBytes(std::size_t parts, std::size_t bytes) { return bytes + 16 * parts; }

}  // namespace weft::bootstrap
