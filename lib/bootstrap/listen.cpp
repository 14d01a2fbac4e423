// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/listen.h"

#include "base/knobs.h"
#include "net/fd_limit.h"
#include "net/interfaces.h"

namespace weft::bootstrap {

Status addressesFor(IdScope scope, std::vector<net::Address>* out) {
  std::vector<net::Interface> interfaces;
  std::string wanted;
  WEFT_TRY(net::listInterfaces(&interfaces));
  WEFT_TRY(readText(Knob::SocketIfname, &wanted));
  if (scope == IdScope::Network)
    return net::chooseAddresses(interfaces, wanted, net::defaultRouteInterface(), out);
  std::erase_if(interfaces,
                [](const net::Interface& i) { return !i.addresses.front().loopback(); });
  return net::chooseAddresses(interfaces, "", "", out);
}

Status listenForRanks(IdScope scope, std::vector<net::Socket>* listeners,
                      std::vector<net::Address>* addresses) {
  std::vector<net::Address> wanted;
  WEFT_TRY(addressesFor(scope, &wanted));
  // Said now, while nobody waits for a root that could not let them in.
  WEFT_TRY(net::reserveFds(wanted.size() + kRootFds + kMaxUnauthenticated));
  Status failure;
  for (net::Address& address : wanted) {
    net::Socket socket;
    net::Address bound;
    int error = 0;
    address.port = 0;
    const Status listened = net::listenAt(address, &socket, &bound, &error);
    if (listened.ok()) {
      listeners->push_back(std::move(socket));
      addresses->push_back(bound);
    } else {
      failure = listened;
    }
  }
  return listeners->empty() ? failure : Status();
}

}  // namespace weft::bootstrap
