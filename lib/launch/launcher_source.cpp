// SPDX-License-Identifier: Apache-2.0
#include "launch/launcher_source.h"

#include <algorithm>

#include "base/environment.h"
#include "base/invalid.h"
#include "base/log.h"
#include "base/max_ranks.h"
#include "base/number.h"
#include "base/text.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/secret.h"
#include "bootstrap/unique_id.h"
#include "net/bytes.h"

namespace weft::launch {
namespace {

// Once a job, and not of one that is on a single host by its address.
void warnOfStrangers(const Identity& identity, const bootstrap::UniqueId& id) {
  bootstrap::IdContent content;
  if (identity.rank != 0 || !bootstrap::decodeId(id, &content).ok() ||
      std::ranges::all_of(content.addresses, &net::Address::loopback))
    return;
  logWarn(
      "no WEFT_SECRET or WEFT_SECRET_FILE, so whoever reaches rank 0 and knows the job's name may "
      "join (WEFT_AUTH=off silences this, WEFT_AUTH=require forbids it)");
}

}  // namespace

Status environmentNumber(const char* name, int min, int max, int* value) {
  const std::string written = environment(name);
  if (parseNumber(written, value) && *value >= min && *value <= max) return {};
  return invalidVariable(name, name, "=", written, " is not a number from ", min, " to ", max,
                         ". fix: check the launcher, or set WEFT_RANK, WEFT_SIZE and WEFT_ROOT");
}

Status optionalNumber(const char* name, int min, int max, int* value) {
  return environment(name).empty() ? Status() : environmentNumber(name, min, max, value);
}

bool allSet(std::initializer_list<const char*> names) {
  return std::ranges::none_of(names, [](const char* name) { return environment(name).empty(); });
}

Status readIdentity(const IdentityVariables& names, Identity* identity) {
  WEFT_TRY(environmentNumber(names.size, 1, kMaxRanks, &identity->size));
  WEFT_TRY(environmentNumber(names.rank, 0, identity->size - 1, &identity->rank));
  WEFT_TRY(optionalNumber(names.localRank, 0, identity->size - 1, &identity->localRank));
  return optionalNumber(names.localSize, 1, identity->size, &identity->localSize);
}

std::uint16_t portForJob(const std::string& jobName) {
  const net::Digest digest = net::sha256({net::bytesOf("weft port "), net::bytesOf(jobName)});
  return static_cast<std::uint16_t>(16384 +
                                    net::ByteReader(digest).number<std::uint16_t>() % 16384);
}

Status idForJob(const Identity& identity, const std::string& hostPort, const std::string& jobName,
                Deadline deadline, bootstrap::UniqueId* id) {
  std::string secret;
  bool worthAWarning = false;
  WEFT_TRY(bootstrap::secretForJob(jobName, &secret, &worthAWarning));
  WEFT_TRY(bootstrap::uniqueIdFromAddress(hostPort, secret, deadline, id));
  if (worthAWarning) warnOfStrangers(identity, *id);
  return {};
}

std::string idToHex(const bootstrap::UniqueId& id) {
  std::string hex;
  for (std::byte byte : id.bytes) {
    const auto value = std::to_integer<unsigned>(byte);
    hex += "0123456789abcdef"[value >> 4];
    hex += "0123456789abcdef"[value & 15];
  }
  return hex;
}

Status idFromHex(const std::string& hex, bootstrap::UniqueId* id) {
  bool valid = hex.size() == 2 * id->bytes.size();
  for (std::size_t i = 0; valid && i < id->bytes.size(); ++i) {
    std::uint8_t value = 0;
    valid = parseNumber(std::string_view(hex).substr(2 * i, 2), &value, 16);
    id->bytes[i] = std::byte{value};
  }
  if (valid) return {};
  return Status::error(Code::RemoteError, "the launcher's store handed over ", hex.size(),
                       " characters that are no unique id");
}

}  // namespace weft::launch
