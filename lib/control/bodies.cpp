// SPDX-License-Identifier: Apache-2.0
#include "control/bodies.h"

#include <algorithm>

#include "control/groups.h"

namespace weft::control {
namespace {

constexpr std::uint8_t kInCall = 1, kLeft = 2, kDescribed = 4, kParting = 8;

void encodeState(const News::Group& group, net::ByteWriter* to) {
  const int flags = (group.inCall ? kInCall : 0) | (group.left ? kLeft : 0) |
                    (group.described ? kDescribed : 0) | (group.parting ? kParting : 0);
  to->number(static_cast<std::uint8_t>(flags));
  to->small(group.last.seq).number(group.last.fingerprint);
  if (group.described) to->small(group.last.count).number(group.last.what);
  if (group.parting) encode(*group.parting, to);
}

News::Group decodeState(net::ByteReader* from) {
  News::Group group;
  const auto flags = from->number<std::uint8_t>();
  group.inCall = (flags & kInCall) != 0;
  group.left = (flags & kLeft) != 0;
  group.described = (flags & kDescribed) != 0;
  group.last.seq = from->small<std::uint64_t>();
  group.last.fingerprint = from->number<std::uint64_t>();
  if (group.described) {
    group.last.count = from->small<std::uint64_t>();
    group.last.what = from->number<std::uint64_t>();
  }
  if ((flags & kParting) != 0) group.parting = decodeCall(from);
  return group;
}

// The ranks that no group has named yet.
class Rest {
 public:
  explicit Rest(std::size_t ranks) : taken_(ranks) {}
  // False if one of them was.
  bool take(const RankSet& set) {
    bool free = true;
    set.forEach([&](std::uint32_t rank) {
      free = free && !taken_[rank];
      taken_[rank] = true;
    });
    return free;
  }
  RankSet left() const {
    RankSet set;
    for (std::uint32_t r = 0; r < taken_.size(); ++r)
      if (!taken_[r]) set.add(r);
    return set;
  }

 private:
  std::vector<bool> taken_;
};

}  // namespace

net::Bytes encodeRelayed(const RankSet& ranks, net::MessageType type, const net::Bytes& body) {
  net::ByteWriter writer;
  encode(ranks, &writer);
  return writer.number(static_cast<std::uint8_t>(type)).raw(body).take();
}

bool decodeRelayed(net::ByteView bytes, std::size_t ranks, RankSet* set, net::Message* message) {
  net::ByteReader reader(bytes);
  const bool known = decode(&reader, ranks, set);
  message->type = static_cast<net::MessageType>(reader.number<std::uint8_t>());
  const net::ByteView body = reader.rest();
  message->body.assign(body.begin(), body.end());
  return known && reader.done();
}

net::Bytes encodeGrouped(std::uint32_t group, net::MessageType type, const net::Bytes& body) {
  net::ByteWriter writer;
  writer.small(group).number(static_cast<std::uint8_t>(type));
  return writer.raw(body).take();
}

bool decodeGrouped(net::ByteView bytes, std::uint32_t* group, net::Message* message) {
  net::ByteReader reader(bytes);
  *group = reader.small<std::uint32_t>();
  message->type = static_cast<net::MessageType>(reader.number<std::uint8_t>());
  const net::ByteView body = reader.rest();
  message->body.assign(body.begin(), body.end());
  return reader.done();
}

net::Bytes encode(const Loss& loss) {
  net::ByteWriter writer;
  return writer.number(static_cast<std::uint8_t>(loss.kind))
      .small(static_cast<std::uint64_t>(loss.silence.count()))
      .take();
}

bool decode(net::ByteView bytes, Loss* loss) {
  net::ByteReader reader(bytes);
  loss->kind = reader.number<std::uint8_t>() == Loss::Cut ? Loss::Cut : Loss::Closed;
  loss->silence = std::chrono::milliseconds(reader.small<std::uint32_t>());
  return reader.done();
}

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
  writer.small(news.groups.size() << 2 | std::size_t{news.settled} << 1 | std::size_t{news.whole});
  for (std::size_t i = 0; i < news.groups.size(); ++i) {
    encodeState(news.groups[i], &writer);
    if (i != 0 || !news.whole) encode(news.groups[i].ranks, &writer);
  }
  writer.small(news.silences.size());
  for (const News::Silence& silence : news.silences) {
    writer.small(silence.ms);
    encode(silence.ranks, &writer);
  }
  return writer.take();
}

bool decode(net::ByteView bytes, std::size_t ranks, News* news) {
  net::ByteReader reader(bytes);
  *news = {};
  const auto head = reader.small<std::uint32_t>();
  const std::uint32_t groups = head >> 2;
  news->whole = (head & 1) != 0;
  news->settled = (head & 2) != 0;
  Rest rest(ranks);
  bool sound = groups <= ranks && (groups != 0 || !news->whole);
  for (std::uint32_t i = 0; i < groups && sound && reader.ok(); ++i) {
    News::Group& group = news->groups.emplace_back(decodeState(&reader));
    if (i != 0 || !news->whole)
      sound = decode(&reader, ranks, &group.ranks) && rest.take(group.ranks);
  }
  const auto silences = reader.small<std::uint32_t>();
  for (std::uint32_t i = 0; i < silences && sound && reader.ok(); ++i) {
    News::Silence& silence = news->silences.emplace_back();
    silence.ms = reader.small<std::uint32_t>();
    sound = i < ranks && decode(&reader, ranks, &silence.ranks);
  }
  if (!sound || !reader.done()) return false;
  if (news->whole) news->groups[0].ranks = rest.left();
  return true;
}

net::Bytes encode(const Ending& ending) {
  net::ByteWriter writer;
  encode(ending.ranks, &writer);
  return writer.text(ending.why.ok() ? "" : pack(ending.why, transport::kFirstErrorBytes)).take();
}

bool decode(net::ByteView bytes, std::size_t ranks, Ending* ending) {
  net::ByteReader reader(bytes);
  const bool known = decode(&reader, ranks, &ending->ranks);
  const std::string why = reader.text(transport::kFirstErrorBytes);
  ending->why = {};
  return known && reader.done() && (why.empty() || unpack(why, &ending->why));
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
