// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/address.h"

namespace weft::net {

struct Interface {
  std::string name;
  std::vector<Address> addresses;  // IPv4 first; link-local IPv6 is left out
};

// The interfaces that are up, loopback included.
Status listInterfaces(std::vector<Interface>* out);

// Where a bootstrap root listens, at most two addresses (one IPv4, one IPv6) of one interface: of
// the first name in `wanted` (a comma-separated list, WEFT_SOCKET_IFNAME) that is there, an error
// that lists the others if none is; else of the interface with the default route; else the first
// that is not loopback; else loopback. Pure, for tests.
Status chooseAddresses(const std::vector<Interface>& interfaces, std::string_view wanted,
                       std::string_view defaultRoute, std::vector<Address>* out);

// Name of the interface with the default route in the format of /proc/net/route (the lowest metric
// wins) or, in the second, of /proc/net/ipv6_route; empty if there is none.
std::string defaultRouteV4(std::istream& routes);
std::string defaultRouteV6(std::istream& routes);
// The interface of this host's default route: that of IPv4, else of IPv6.
std::string defaultRouteInterface();

}  // namespace weft::net
