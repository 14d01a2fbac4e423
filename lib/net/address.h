// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"

namespace weft::net {

// An IPv4 or IPv6 address with a port, by value.
struct Address {
  bool v6 = false;
  std::array<std::uint8_t, 16> ip{};  // in network order; IPv4 uses the first four
  std::uint16_t port = 0;             // in host order

  bool operator==(const Address&) const = default;
  bool loopback() const;
  // "10.0.0.9:4242" or "[fd00::2]:4242".
  std::string text() const;

  // The size of *to that is in use.
  socklen_t toSockaddr(sockaddr_storage* to) const;
  // Families other than IPv4 and IPv6 give 0.0.0.0:0.
  static Address from(const sockaddr* socketAddress);
};

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};

// "name:port", "1.2.3.4:port" or "[v6]:port". `what` names the origin of the text in the error.
Status parseHostPort(std::string_view what, std::string_view text, HostPort* out);

// The addresses of a host, in the resolver's order. A name that is not known yet (DNS lags behind a
// starting cluster) is asked for again until the deadline; one question may take as long as the
// resolver's own time limit.
Status resolve(const HostPort& target, Deadline deadline, std::vector<Address>* out);

}  // namespace weft::net
