// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "net/socket.h"

namespace weft::net {

// Stream sockets by a name of this host: an abstract one (unix(7)), of the network namespace, without
// a file, gone with the socket that has it. At most 100 bytes. Both return 0 or an errno.

// EADDRINUSE: somebody has the name.
int listenAtName(std::string_view name, Socket* out);
// At once; ECONNREFUSED: nobody listens there.
int connectToName(std::string_view name, Socket* out);

}  // namespace weft::net
