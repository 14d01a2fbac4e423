// SPDX-License-Identifier: Apache-2.0
#include "net/address.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>

#include "base/number.h"
#include "base/text.h"

namespace weft::net {
namespace {

struct FreeAddrinfo {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

bool mayAppearLater(int error) {
  return error == EAI_AGAIN || error == EAI_NONAME || error == EAI_NODATA;
}

int resolveOnce(const HostPort& target, std::vector<Address>* out) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(target.host.c_str(), nullptr, &hints, &list);
  const std::unique_ptr<addrinfo, FreeAddrinfo> owner(list);
  for (const addrinfo* entry = list; error == 0 && entry; entry = entry->ai_next) {
    Address address = Address::from(entry->ai_addr);
    address.port = target.port;
    if (std::ranges::find(*out, address) == out->end()) out->push_back(address);
  }
  return error;
}

}  // namespace

bool Address::loopback() const {
  if (!v6) return ip[0] == 127;
  constexpr Address kLoopback{.v6 = true, .ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  return ip == kLoopback.ip;
}

std::string Address::text() const {
  std::array<char, INET6_ADDRSTRLEN> name{};
  inet_ntop(v6 ? AF_INET6 : AF_INET, ip.data(), name.data(), name.size());
  return v6 ? weft::text('[', name.data(), "]:", port) : weft::text(name.data(), ':', port);
}

socklen_t Address::toSockaddr(sockaddr_storage* to) const {
  std::memset(to, 0, sizeof *to);
  if (v6) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(to);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    std::memcpy(&in6->sin6_addr, ip.data(), 16);
    return sizeof *in6;
  }
  auto* in4 = reinterpret_cast<sockaddr_in*>(to);
  in4->sin_family = AF_INET;
  in4->sin_port = htons(port);
  std::memcpy(&in4->sin_addr, ip.data(), 4);
  return sizeof *in4;
}

Address Address::from(const sockaddr* socketAddress) {
  Address address;
  if (socketAddress->sa_family == AF_INET6) {
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(socketAddress);
    address.v6 = true;
    address.port = ntohs(in6->sin6_port);
    std::memcpy(address.ip.data(), &in6->sin6_addr, 16);
  } else if (socketAddress->sa_family == AF_INET) {
    const auto* in4 = reinterpret_cast<const sockaddr_in*>(socketAddress);
    address.port = ntohs(in4->sin_port);
    std::memcpy(address.ip.data(), &in4->sin_addr, 4);
  }
  return address;
}

Status parseHostPort(std::string_view what, std::string_view written, HostPort* out) {
  const auto invalid = [&] {
    return Status::error(Code::InvalidArgument, what, "=", written,
                         " is not host:port or [v6 address]:port with a port from 1 to 65535; ",
                         "fix: write it as node1:29500");
  };
  const std::size_t colon = written.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return invalid();
  std::string_view host = written.substr(0, colon);
  const std::string_view port = written.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return invalid();
  }
  out->host = host;
  const bool sound = parseNumber(port, &out->port) && out->port != 0;
  return sound && !host.empty() && host.size() <= 255 ? Status() : invalid();
}

Status resolve(const HostPort& target, Deadline deadline, std::vector<Address>* out) {
  out->clear();
  for (;;) {
    const int error = resolveOnce(target, out);
    if (error == 0 && !out->empty()) return {};
    if (!mayAppearLater(error) || deadline.expired())
      return Status::error(Code::SystemError, "cannot resolve host \"", target.host,
                           "\": ", gai_strerror(error), ". fix: check the name and DNS");
    std::this_thread::sleep_for(
        std::min<Deadline::Clock::duration>(deadline.remaining(), std::chrono::milliseconds(200)));
  }
}

}  // namespace weft::net
