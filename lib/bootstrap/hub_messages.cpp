// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/hub_messages.h"

#include <utility>

#include "net/bytes.h"
#include "net/channel.h"

namespace weft::bootstrap {
namespace {

constexpr std::size_t kMost = net::Channel::kMaxFrameAfter;  // the root takes no more from a rank
constexpr std::size_t kHeadBytes = 9;                        // of one that is passed

}  // namespace

std::vector<net::Bytes> encodePassed(const std::vector<Passed>& all) {
  std::vector<net::Bytes> bodies;
  net::ByteWriter writer;
  for (const Passed& one : all) {
    if (writer.size() != 0 && writer.size() + kHeadBytes + one.body.size() > kMost)
      bodies.push_back(std::exchange(writer, {}).take());
    writer.number(one.place).number(static_cast<std::uint8_t>(one.type)).blob(one.body);
  }
  if (writer.size() != 0) bodies.push_back(writer.take());
  return bodies;
}

bool decodePassed(net::ByteView bytes, std::vector<Passed>* all) {
  net::ByteReader reader(bytes);
  all->clear();
  while (reader.ok() && !reader.done()) {
    Passed one;
    one.place = reader.number<std::uint32_t>();
    one.type = static_cast<net::MessageType>(reader.number<std::uint8_t>());
    const net::ByteView body = reader.blob(kMost);
    one.body.assign(body.begin(), body.end());
    if (reader.ok()) all->push_back(std::move(one));
  }
  return reader.ok();
}

net::Bytes encode(const Member& member) {
  return net::ByteWriter().blob(encode(member.hello)).blob(encode(member.info)).take();
}

bool decode(net::ByteView bytes, Member* member) {
  net::ByteReader reader(bytes);
  const net::ByteView hello = reader.blob(kMost), info = reader.blob(kMost);
  const bool sound = reader.done() && decode(hello, &member->hello) && decode(info, &member->info);
  member->info.who.rank = member->hello.rank;
  return sound;
}

net::Bytes encodeNumber(std::uint32_t number) { return net::ByteWriter().number(number).take(); }

bool decodeNumber(net::ByteView bytes, std::uint32_t* number) {
  net::ByteReader reader(bytes);
  *number = reader.number<std::uint32_t>();
  return reader.done();
}

net::Bytes encode(const HubName& hub) {
  return net::ByteWriter()
      .number(hub.who.rank)
      .number(hub.who.pid)
      .text(hub.who.host)
      .text(hub.root)
      .take();
}

bool decode(net::ByteView bytes, HubName* hub) {
  net::ByteReader reader(bytes);
  hub->who.rank = reader.number<int>();
  hub->who.pid = reader.number<int>();
  hub->who.host = printable(reader.text(kMaxHostBytes));
  hub->root = printable(reader.text(2 * kMaxHostBytes));
  return reader.done();
}

}  // namespace weft::bootstrap
