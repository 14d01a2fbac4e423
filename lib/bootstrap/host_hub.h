// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/peer_name.h"
#include "base/status.h"
#include "bootstrap/messages.h"
#include "net/crypto.h"
#include "net/socket.h"
#include "net/stream.h"

namespace weft::bootstrap {

// Between the ranks of a host and the root, so that the root has one connection a host, and sends a
// table once to all of it. It decides nothing: what ranks say is passed on in their order, in few
// messages, and what the root says goes to all of them.
//
// Its ranks find it by a name (unix(7), abstract) that is made of the id's secret, and both sides
// prove that they have that, as to a root. Whoever takes the name first makes the hub (approach.h).
// Nobody depends on it before all have met: once it is gone, or silent, its ranks go to the root
// themselves (line.h). Later they could not, as the root takes nobody any more; but a hub that is
// lost then is a rank lost, the one in whose process it is, and is named so.
struct HubSpec {
  PeerName leader;  // the rank in whose process it is
  net::Socket listener;
  net::Key secret{};
  std::unique_ptr<net::Stream> root;  // has welcomed it, and knows what it is
  std::string rootName;
};

// Of ranks that speak one protocol. `host`: for tests, which play several on one.
std::string hubName(const net::Key& secret, const Hello& hello, std::string_view host);

// A thread of this process, until all of its ranks have gone, the root has, or the process ends.
Status startHub(HubSpec spec);

}  // namespace weft::bootstrap
