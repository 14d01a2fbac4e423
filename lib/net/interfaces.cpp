// SPDX-License-Identifier: Apache-2.0
#include "net/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>

#include "base/invalid.h"
#include "base/text.h"

namespace weft::net {
namespace {

struct FreeIfaddrs {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

bool usable(const ifaddrs& entry) {
  if (!entry.ifa_addr || !(entry.ifa_flags & IFF_UP)) return false;
  const int family = entry.ifa_addr->sa_family;
  if (family != AF_INET && family != AF_INET6) return false;
  const Address address = Address::from(entry.ifa_addr);
  const bool linkLocal = address.v6 && address.ip[0] == 0xfe && (address.ip[1] & 0xc0) == 0x80;
  return !linkLocal;
}

Interface& entryFor(std::string_view name, std::vector<Interface>* interfaces) {
  const auto found = std::ranges::find(*interfaces, name, &Interface::name);
  return found != interfaces->end() ? *found
                                    : interfaces->emplace_back(Interface{std::string(name), {}});
}

const Interface* find(const std::vector<Interface>& interfaces, std::string_view name) {
  const auto found = std::ranges::find(interfaces, name, &Interface::name);
  return found == interfaces.end() ? nullptr : &*found;
}

const Interface* findFirstOf(const std::vector<Interface>& interfaces, std::string_view names) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    if (const Interface* found = find(interfaces, name)) return found;
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
  return nullptr;
}

const Interface* findByDefault(const std::vector<Interface>& interfaces,
                               std::string_view defaultRoute) {
  if (const Interface* routed = find(interfaces, defaultRoute)) return routed;
  for (const Interface& interface : interfaces)
    if (!interface.addresses.front().loopback()) return &interface;
  return interfaces.empty() ? nullptr : &interfaces.front();
}

}  // namespace

Status listInterfaces(std::vector<Interface>* out) {
  out->clear();
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0)
    return Status::error(Code::SystemError, "getifaddrs: ", std::strerror(errno));
  const std::unique_ptr<ifaddrs, FreeIfaddrs> owner(list);
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next)
    if (usable(*entry))
      entryFor(entry->ifa_name, out).addresses.push_back(Address::from(entry->ifa_addr));
  for (Interface& interface : *out) std::ranges::stable_sort(interface.addresses, {}, &Address::v6);
  return {};
}

Status chooseAddresses(const std::vector<Interface>& interfaces, std::string_view wanted,
                       std::string_view defaultRoute, std::vector<Address>* out) {
  out->clear();
  const Interface* chosen =
      wanted.empty() ? findByDefault(interfaces, defaultRoute) : findFirstOf(interfaces, wanted);
  if (!chosen) {
    const std::string what =
        wanted.empty() ? "no network interface is up, not even loopback"
                       : text("WEFT_SOCKET_IFNAME=", wanted, " names no interface with an address");
    const std::string fix = interfaces.empty()
                                ? "ip link set lo up, or start all ranks where a network is"
                                : text("use one of: ", joined(interfaces, ", ", &Interface::name));
    const Status none = invalid(what, ". fix: ", fix);
    return wanted.empty() ? none : ofVariable("WEFT_SOCKET_IFNAME", none);
  }
  for (const Address& address : chosen->addresses) {
    const bool another = !out->empty() && out->front().v6 == address.v6;
    if (!another && out->size() < 2) out->push_back(address);
  }
  return {};
}

std::string defaultRouteV4(std::istream& routes) {
  std::string best, line;
  unsigned long bestMetric = std::numeric_limits<unsigned long>::max();
  while (std::getline(routes, line)) {
    std::istringstream fields(line);
    std::string name, destination, gateway, mask;
    unsigned long flags = 0, references = 0, use = 0, metric = 0;
    fields >> name >> destination >> gateway >> std::hex >> flags >> std::dec >> references >>
        use >> metric >> mask;
    const bool byDefault =
        fields && destination == "00000000" && mask == "00000000" && (flags & 1) != 0;
    if (byDefault && metric < bestMetric) {
      best = name;
      bestMetric = metric;
    }
  }
  return best;
}

std::string defaultRouteV6(std::istream& routes) {
  std::string line;
  while (std::getline(routes, line)) {
    std::istringstream fields(line);
    std::string destination, prefix, skipped, name;
    fields >> destination >> prefix;
    for (int i = 0; i < 7; ++i) fields >> skipped;
    fields >> name;
    const bool anywhere = destination.find_first_not_of('0') == std::string::npos && prefix == "00";
    if (fields && anywhere && name != "lo") return name;
  }
  return {};
}

std::string defaultRouteInterface() {
  std::ifstream v4("/proc/net/route"), v6("/proc/net/ipv6_route");
  const std::string name = defaultRouteV4(v4);
  return name.empty() ? defaultRouteV6(v6) : name;
}

}  // namespace weft::net
