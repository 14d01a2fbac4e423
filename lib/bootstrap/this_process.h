// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/peer_name.h"

namespace weft::bootstrap {

// This process as `rank`, with its host id: the kernel's boot id and the network namespace. Ranks in
// one namespace of one running kernel can connect over abstract Unix sockets and so hand each other
// memory; other namespaces (IPC, PID, mount) do not matter to that.
PeerName nameOfThisProcess(int rank);

// This libweft's version, "0.1.0".
std::string libraryVersion();

}  // namespace weft::bootstrap
