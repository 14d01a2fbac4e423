// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace weft::verbs {

// What addresses a port of RoCE: an IPv6 address, or an IPv4 address in the last 32 bits.
using Gid = std::array<std::uint8_t, 16>;
enum class GidKind : std::uint8_t { None, LinkLocal, Ipv6, Ipv4 };

GidKind kindOf(const Gid& gid);
// "10.0.0.1", "fe80::1"
std::string show(const Gid& gid);
// Do the first `bits` of the 128 agree?
bool sharePrefix(const Gid& a, const Gid& b, std::uint32_t bits);

// WEFT_ROCE_GID: which of a port's GIDs is taken.
class GidRule {
 public:
  // auto, ipv4, ipv6, link-local, or a range such as 10.1.0.0/16 or fd00::/8.
  static Status parse(const std::string& rule, GidRule* out);
  // The best one has the highest score; 0: not this one.
  int score(const Gid& gid) const;

 private:
  GidKind only_ = GidKind::None;
  Gid range_{};
  std::uint32_t bits_ = 0;
};

}  // namespace weft::verbs
