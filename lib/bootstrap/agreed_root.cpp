// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/agreed_root.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "bootstrap/listen.h"
#include "net/fd_limit.h"
#include "net/interfaces.h"

namespace weft::bootstrap {
namespace {

Status addressesToListenAt(const IdContent& id, std::vector<net::Address>* out) {
  std::vector<net::Interface> interfaces;
  WEFT_TRY(net::listInterfaces(&interfaces));
  const auto isOurs = [&](net::Address address) {
    address.port = 0;
    return std::ranges::any_of(interfaces, [&](const net::Interface& interface) {
      return std::ranges::find(interface.addresses, address) != interface.addresses.end();
    });
  };
  bool reachable = false;
  for (const net::Address& address : id.addresses) {
    // Every 127.x.y.z is loopback, though the interface lists 127.0.0.1 only.
    if (isOurs(address) || address.loopback()) out->push_back(address);
    reachable = reachable || isOurs(address);
  }
  if (reachable) return {};
  std::vector<net::Address> chosen;
  WEFT_TRY(addressesFor(IdScope::Network, &chosen));
  for (net::Address& address : chosen) {
    address.port = id.addresses.front().port;
    logInfo("the agreed address ", id.addresses.front().text(),
            " is not of this host; also listening at ", address.text());
    out->push_back(address);
  }
  return {};
}

}  // namespace

Status AgreedRoot::start(std::vector<net::Address>* addresses) {
  if (done_) return {};
  std::vector<net::Address> wanted;
  WEFT_TRY(addressesToListenAt(id_, &wanted));
  WEFT_TRY(net::reserveFds(wanted.size() + kRootFds));
  std::vector<net::Socket> listeners;
  Status failure;
  for (const net::Address& address : wanted) {
    net::Socket socket;
    net::Address bound;
    int error = 0;
    const Status listened = net::listenAt(address, &socket, &bound, &error);
    if (error == EADDRINUSE) {
      if (taken_.empty()) logInfo(listened.text(), "; trying to join whoever does");
      taken_ = address.text();
      return {};
    }
    if (!listened.ok()) failure = listened;
    if (listened.ok()) listeners.push_back(std::move(socket));
    if (std::ranges::find(*addresses, address) == addresses->end()) addresses->push_back(address);
  }
  if (listeners.empty()) return failure;
  done_ = true;
  taken_.clear();
  return startRoot(std::move(listeners), id_.secret, options_);
}

}  // namespace weft::bootstrap
