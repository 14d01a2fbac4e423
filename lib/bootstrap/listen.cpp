// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/listen.h"

#include "base/knobs.h"
#include "bootstrap/fd_limit.h"
#include "bootstrap/interfaces.h"

namespace weft {
namespace {

Status addressesFor(IdScope scope, std::vector<Address>* out) {
  std::vector<Interface> interfaces;
  std::string wanted;
  WEFT_TRY(listInterfaces(&interfaces));
  WEFT_TRY(readText(Knob::SocketIfname, &wanted));
  if (scope == IdScope::Network)
    return chooseAddresses(interfaces, wanted, defaultRouteInterface(), out);
  std::erase_if(interfaces, [](const Interface& i) { return !i.addresses.front().loopback(); });
  return chooseAddresses(interfaces, "", "", out);
}

}  // namespace

Status listenForRanks(IdScope scope, std::vector<Socket>* listeners,
                      std::vector<Address>* addresses) {
  std::vector<Address> wanted;
  WEFT_TRY(addressesFor(scope, &wanted));
  // Said now, while nobody waits for a root that could not let them in.
  WEFT_TRY(reserveFds(wanted.size() + kRootFds + kMaxStrangers));
  Status failure;
  for (Address& address : wanted) {
    Socket socket;
    Address bound;
    int error = 0;
    address.port = 0;
    const Status listened = listenAt(address, &socket, &bound, &error);
    if (listened.ok()) {
      listeners->push_back(std::move(socket));
      addresses->push_back(bound);
    } else {
      failure = listened;
    }
  }
  return listeners->empty() ? failure : Status();
}

}  // namespace weft
