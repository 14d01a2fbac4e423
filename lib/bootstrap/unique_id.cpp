// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/unique_id.h"

#include <algorithm>

#include "base/invalid.h"
#include "base/text.h"
#include "net/bytes.h"

namespace weft::bootstrap {
namespace {

constexpr std::string_view kMagic = "weft";
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kChecksumBytes = 8;

net::Digest checksum(net::ByteView body) {
  return net::sha256({net::bytesOf("weft unique id"), body});
}

void writeAddress(const net::Address& address, net::ByteWriter* to) {
  to->number<std::uint8_t>(address.v6 ? 6 : 4)
      .number(address.port)
      .raw(std::as_bytes(std::span(address.ip)));
}

net::Address readAddress(net::ByteReader* from) {
  net::Address address;
  address.v6 = from->number<std::uint8_t>() == 6;
  address.port = from->number<std::uint16_t>();
  std::array<std::byte, 16> ip{};
  from->array(&ip);
  std::transform(ip.begin(), ip.end(), address.ip.begin(), std::to_integer<std::uint8_t>);
  return address;
}

Status corrupt(std::string_view why) {
  return invalid("the unique id is ", why,
                 ". fix: hand over all 128 bytes of weftGetUniqueId's result unchanged");
}

}  // namespace

UniqueId encodeId(const IdContent& content) {
  net::ByteWriter writer;
  writer.raw(net::bytesOf(kMagic))
      .number(kVersion)
      .number(static_cast<std::uint8_t>(content.origin));
  const std::size_t count = std::min(content.addresses.size(), kMaxIdAddresses);
  writer.number(static_cast<std::uint8_t>(count));
  for (std::size_t i = 0; i < kMaxIdAddresses; ++i)
    writeAddress(i < count ? content.addresses[i] : net::Address(), &writer);
  writer.raw(content.secret).number(content.createdUnixSeconds);
  writer.number(static_cast<std::uint8_t>(content.job.kind)).number(content.job.nonce);
  net::Bytes body = writer.take();
  body.resize(sizeof(UniqueId) - kChecksumBytes);

  UniqueId id;
  std::copy(body.begin(), body.end(), id.bytes.begin());
  const net::Digest sum = checksum(body);
  std::copy_n(sum.begin(), kChecksumBytes, id.bytes.end() - kChecksumBytes);
  return id;
}

Status decodeId(const UniqueId& id, IdContent* content) {
  const net::ByteView all(id.bytes);
  const net::ByteView body = all.first(all.size() - kChecksumBytes);
  net::ByteReader reader(body);
  if (!std::ranges::equal(reader.raw(kMagic.size()), net::bytesOf(kMagic)))
    return corrupt("not one of weft's");
  const int version = reader.number<std::uint8_t>();
  if (version != kVersion)
    return invalid("the unique id has version ", version, ", this libweft reads version ",
                   int{kVersion}, ". fix: load the same libweft everywhere");
  const net::Digest sum = checksum(body);
  if (!net::equalInConstantTime(net::ByteView(sum).first(kChecksumBytes), all.last(kChecksumBytes)))
    return corrupt("damaged (its checksum differs)");
  content->origin = static_cast<IdContent::Origin>(reader.number<std::uint8_t>());
  const std::size_t count = reader.number<std::uint8_t>();
  content->addresses.clear();
  for (std::size_t i = 0; i < kMaxIdAddresses; ++i) {
    const net::Address address = readAddress(&reader);
    if (i < count) content->addresses.push_back(address);
  }
  reader.array(&content->secret);
  content->createdUnixSeconds = reader.number<std::int64_t>();
  content->job.kind = static_cast<JobKind>(reader.number<std::uint8_t>());
  content->job.nonce = reader.number<std::uint64_t>();
  const bool sane = content->origin <= IdContent::Origin::Address && count >= 1 &&
                    count <= kMaxIdAddresses && content->job.kind <= JobKind::AwsBatch;
  return sane ? Status() : corrupt("damaged");
}

std::string ageOf(std::int64_t createdUnixSeconds, std::int64_t nowUnixSeconds) {
  if (createdUnixSeconds <= 0) return "at an unknown time";
  const std::int64_t seconds = std::max<std::int64_t>(0, nowUnixSeconds - createdUnixSeconds);
  if (seconds < 120) return text(seconds, " s ago");
  if (seconds < 7200) return text(seconds / 60, " min ago");
  if (seconds < 172800) return text(seconds / 3600, " h ago");
  return text(seconds / 86400, " days ago");
}

}  // namespace weft::bootstrap
