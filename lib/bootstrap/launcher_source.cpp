// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/launcher_source.h"

#include <charconv>

#include "base/environment.h"
#include "base/text.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/bytes.h"
#include "bootstrap/secret.h"

namespace weft {
namespace {

constexpr int kMaxRanks = 1 << 20;

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

Status environmentNumber(const char* name, int min, int max, int* value) {
  const std::string written = environment(name);
  const char* end = written.data() + written.size();
  const auto [rest, error] = std::from_chars(written.data(), end, *value);
  if (error == std::errc() && rest == end && *value >= min && *value <= max) return {};
  return Status::error(
      Code::InvalidArgument,
      text(name, "=", written, " is not a number from ", min, " to ", max,
           ". fix: check the launcher, or set WEFT_RANK, WEFT_SIZE and WEFT_ROOT"));
}

Status optionalNumber(const char* name, int min, int max, int* value) {
  return environment(name).empty() ? Status() : environmentNumber(name, min, max, value);
}

Status rankAndSize(const char* rankName, const char* sizeName, Identity* identity) {
  WEFT_TRY(environmentNumber(sizeName, 1, kMaxRanks, &identity->size));
  return environmentNumber(rankName, 0, identity->size - 1, &identity->rank);
}

std::uint16_t portForJob(const std::string& jobName) {
  const Digest digest = sha256({bytesOf("weft port "), bytesOf(jobName)});
  return static_cast<std::uint16_t>(16384 + ByteReader(digest).number<std::uint16_t>() % 16384);
}

Status idForJob(const std::string& hostPort, const std::string& jobName, Deadline deadline,
                UniqueId* id) {
  std::string secret;
  WEFT_TRY(secretForJob(jobName, &secret));
  return uniqueIdFromAddress(hostPort, secret, deadline, id);
}

std::string idToHex(const UniqueId& id) {
  std::string hex;
  for (std::byte byte : id.bytes) {
    const auto value = std::to_integer<unsigned>(byte);
    hex += "0123456789abcdef"[value >> 4];
    hex += "0123456789abcdef"[value & 15];
  }
  return hex;
}

Status idFromHex(const std::string& hex, UniqueId* id) {
  bool valid = hex.size() == 2 * id->bytes.size();
  for (std::size_t i = 0; valid && i < id->bytes.size(); ++i) {
    const int high = hexDigit(hex[2 * i]), low = hexDigit(hex[2 * i + 1]);
    valid = high >= 0 && low >= 0;
    if (valid) id->bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  if (valid) return {};
  return Status::error(Code::RemoteError, text("the launcher's store handed over ", hex.size(),
                                               " characters that are no unique id"));
}

}  // namespace weft
