// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/gid.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/invalid.h"
#include "base/number.h"

namespace weft::verbs {
namespace {

constexpr std::uint32_t kIpv4Bits = 96;  // in front of a mapped IPv4 address
constexpr Gid kIpv4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr Gid kLinkLocalPrefix = {0xfe, 0x80};

Status bad(const std::string& rule) {
  return invalidVariable(
      "WEFT_ROCE_GID", "WEFT_ROCE_GID is '", rule,
      "'; fix: auto, ipv4, ipv6, link-local, or an address range such as 10.1.0.0/16");
}

// False: not an address.
bool parseAddress(const std::string& address, Gid* gid, std::uint32_t* bits) {
  *gid = kIpv4Prefix;
  *bits = 32;
  if (::inet_pton(AF_INET, address.c_str(), gid->data() + 12) == 1) return true;
  *bits = 128;
  return ::inet_pton(AF_INET6, address.c_str(), gid->data()) == 1;
}

}  // namespace

GidKind kindOf(const Gid& gid) {
  if (gid == Gid{}) return GidKind::None;
  if (sharePrefix(gid, kIpv4Prefix, kIpv4Bits)) return GidKind::Ipv4;
  return sharePrefix(gid, kLinkLocalPrefix, 64) ? GidKind::LinkLocal : GidKind::Ipv6;
}

std::string show(const Gid& gid) {
  char name[INET6_ADDRSTRLEN] = {};
  if (kindOf(gid) == GidKind::Ipv4)
    ::inet_ntop(AF_INET, gid.data() + 12, name, sizeof(name));
  else
    ::inet_ntop(AF_INET6, gid.data(), name, sizeof(name));
  return name;
}

bool sharePrefix(const Gid& a, const Gid& b, std::uint32_t bits) {
  const std::uint32_t whole = bits / 8;
  if (!std::equal(a.begin(), a.begin() + whole, b.begin())) return false;
  if (bits % 8 == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xff00u >> (bits % 8));
  return ((a[whole] ^ b[whole]) & mask) == 0;
}

Status GidRule::parse(const std::string& rule, GidRule* out) {
  *out = GidRule();
  if (rule == "auto") return {};
  if (rule == "ipv4") out->only_ = GidKind::Ipv4;
  if (rule == "ipv6") out->only_ = GidKind::Ipv6;
  if (rule == "link-local") out->only_ = GidKind::LinkLocal;
  if (out->only_ != GidKind::None) return {};

  const auto slash = rule.find('/');
  std::uint32_t most = 0;
  if (slash == std::string::npos || !parseAddress(rule.substr(0, slash), &out->range_, &most))
    return bad(rule);
  if (!parseNumber(rule.substr(slash + 1), &out->bits_) || out->bits_ > most) return bad(rule);
  out->bits_ += 128 - most;
  return {};
}

int GidRule::score(const Gid& gid) const {
  const GidKind kind = kindOf(gid);
  if (only_ != GidKind::None && kind != only_) return 0;
  if (bits_ != 0 && !sharePrefix(gid, range_, bits_)) return 0;
  return static_cast<int>(kind);
}

}  // namespace weft::verbs
