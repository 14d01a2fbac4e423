// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/agreed_root.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/knobs.h"
#include "base/log.h"
#include "bootstrap/fd_limit.h"
#include "bootstrap/interfaces.h"

namespace weft {
namespace {

Status addressesToListenAt(const IdContent& id, std::vector<Address>* out) {
  std::vector<Interface> interfaces;
  WEFT_TRY(listInterfaces(&interfaces));
  const auto isOurs = [&](const Address& address) {
    return std::any_of(interfaces.begin(), interfaces.end(), [&](const Interface& interface) {
      return std::any_of(
          interface.addresses.begin(), interface.addresses.end(),
          [&](const Address& own) { return own.v6 == address.v6 && own.ip == address.ip; });
    });
  };
  bool reachable = false;
  for (const Address& address : id.addresses) {
    // Every 127.x.y.z is loopback, though the interface lists 127.0.0.1 only.
    if (isOurs(address) || address.loopback()) out->push_back(address);
    reachable = reachable || isOurs(address);
  }
  if (reachable) return {};
  std::string wanted;
  WEFT_TRY(readText(Knob::SocketIfname, &wanted));
  std::vector<Address> chosen;
  WEFT_TRY(chooseAddresses(interfaces, wanted, defaultRouteInterface(), &chosen));
  for (Address& address : chosen) {
    address.port = id.addresses.front().port;
    logInfo("the agreed address ", id.addresses.front().text(),
            " is not of this host; also listening at ", address.text());
    out->push_back(address);
  }
  return {};
}

}  // namespace

Status AgreedRoot::start(std::vector<Address>* addresses) {
  if (done_) return {};
  std::vector<Address> wanted;
  WEFT_TRY(addressesToListenAt(id_, &wanted));
  WEFT_TRY(reserveFds(wanted.size() + kRootFds));
  std::vector<Socket> listeners;
  Status failure;
  for (const Address& address : wanted) {
    Socket socket;
    Address bound;
    int error = 0;
    const Status listened = listenAt(address, &socket, &bound, &error);
    if (error == EADDRINUSE) {
      if (!saidBusy_) logInfo(listened.text(), "; trying to join whoever does");
      saidBusy_ = true;
      return {};
    }
    if (!listened.ok()) failure = listened;
    if (listened.ok()) listeners.push_back(std::move(socket));
    if (std::find(addresses->begin(), addresses->end(), address) == addresses->end())
      addresses->push_back(address);
  }
  if (listeners.empty()) return failure;
  done_ = true;
  return startRoot(std::move(listeners), id_.secret, options_);
}

}  // namespace weft
