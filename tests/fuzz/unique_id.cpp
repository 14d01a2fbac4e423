// SPDX-License-Identifier: Apache-2.0
// Unique ids, as bytes and as text, with the checksum that they have or with the right one; and the addresses that users
// write.
#include "bootstrap/unique_id.h"

#include <algorithm>
#include <ctime>

#include "fuzz.h"
#include "launch/launcher_source.h"

namespace weft::fuzz {
namespace {

using bootstrap::UniqueId;

bool isSame(const bootstrap::IdContent& a, const bootstrap::IdContent& b) {
  return a.origin == b.origin && a.addresses == b.addresses && a.secret == b.secret &&
         a.createdUnixSeconds == b.createdUnixSeconds && a.job.kind == b.job.kind &&
         a.job.nonce == b.job.nonce;
}

// As encodeId() ends an id.
void repair(UniqueId* id) {
  constexpr std::size_t kChecksumBytes = 8;
  const net::ByteView body = net::ByteView(id->bytes).first(id->bytes.size() - kChecksumBytes);
  const net::Digest sum = net::sha256({net::bytesOf("weft unique id"), body});
  std::copy_n(sum.begin(), kChecksumBytes, id->bytes.end() - kChecksumBytes);
}

void tryId(const UniqueId& id) {
  bootstrap::IdContent first, second;
  if (!isGood(bootstrap::decodeId(id, &first))) return;
  require(isGood(bootstrap::decodeId(bootstrap::encodeId(first), &second)) && isSame(first, second),
          "an id taken apart is put together as the same");
  require(!bootstrap::ageOf(first.createdUnixSeconds, std::time(nullptr)).empty(), "it has an age");
  for (const net::Address& address : first.addresses)
    require(!address.text().empty(), "an address can be shown");
}

void tryBytes(Input input, bool sound) {
  UniqueId id;
  std::ranges::copy(bytesOf(input.first(std::min(input.size(), id.bytes.size()))),
                    id.bytes.begin());
  if (sound) repair(&id);
  tryId(id);
}

void tryHex(std::string_view text) {
  UniqueId id;
  if (!isGood(launch::idFromHex(std::string(text), &id))) return;
  UniqueId again;
  require(isGood(launch::idFromHex(launch::idToHex(id), &again)) && again.bytes == id.bytes,
          "an id is read as it was written");
  tryId(id);
}

void tryAddress(std::string_view text) {
  net::HostPort parsed;
  if (!isGood(net::parseHostPort("ADDRESS", text, &parsed))) return;
  require(parsed.port != 0 && !parsed.host.empty() && parsed.host.size() <= 255,
          "it is an address");
}

}  // namespace

void tryInput(Input input) {
  if (input.empty()) return;
  const Input rest = input.subspan(1);
  switch (input[0] % 4) {
    case 0:
      return tryBytes(rest, false);
    case 1:
      return tryBytes(rest, true);
    case 2:
      return tryHex(textOf(rest));
    default:
      return tryAddress(textOf(rest));
  }
}

}  // namespace weft::fuzz
