// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/status.h"
#include "bootstrap/address.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/socket.h"

namespace weft {

// Listens where ranks can come to, on ports of the kernel's choice: on the interface that
// createUniqueId() speaks of. Says first whether this process may have as many descriptors as a
// root needs to let in the first.
Status listenForRanks(IdScope scope, std::vector<Socket>* listeners,
                      std::vector<Address>* addresses);

}  // namespace weft
