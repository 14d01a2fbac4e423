// SPDX-License-Identifier: Apache-2.0
#include "base/hosts.h"

#include <algorithm>
#include <map>
#include <string>

namespace weft::inline base {

std::vector<std::uint32_t> hostsOf(const std::vector<PeerName>& names) {
  std::map<std::string, std::uint32_t> numbers;
  std::vector<std::uint32_t> hosts;
  hosts.reserve(names.size());
  for (std::size_t r = 0; r < names.size(); ++r) {
    const bool isNext = r != 0 && names[r].hostId == names[r - 1].hostId;  // mostly
    const auto next = static_cast<std::uint32_t>(numbers.size());
    hosts.push_back(isNext ? hosts.back() : numbers.emplace(names[r].hostId, next).first->second);
  }
  return hosts;
}

bool isOneHost(const std::vector<std::uint32_t>& hosts) {
  return std::ranges::all_of(hosts, [](std::uint32_t h) { return h == 0; });
}

}  // namespace weft::inline base
