// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/status.h"
#include "bootstrap/bootstrap.h"
#include "net/address.h"
#include "net/socket.h"

namespace weft::bootstrap {

// Where ranks can come to: the addresses of the interface that createUniqueId() speaks of.
Status addressesFor(IdScope scope, std::vector<net::Address>* out);

// Listens there, on ports of the kernel's choice. Says first whether this process may have as many
// descriptors as a root needs to let in the first.
Status listenForRanks(IdScope scope, std::vector<net::Socket>* listeners,
                      std::vector<net::Address>* addresses);

}  // namespace weft::bootstrap
