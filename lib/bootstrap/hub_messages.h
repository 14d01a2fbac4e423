// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bootstrap/conflicts.h"
#include "net/crypto.h"
#include "net/message_type.h"

namespace weft::bootstrap {

// The configuration of who is no rank but the hub of a host; ranks' have a '=' in them.
inline constexpr const char* kHubConfig = "hub";

// What a rank says, as its hub passes it on. A rank's first is Info, of all that a Member is; Ended
// says that it was lost.
struct Passed {
  // How many had introduced themselves to this hub before it. Of kNobody only losses are told: by the
  // rank in the body.
  std::uint32_t place = 0;
  net::MessageType type = net::MessageType::Ended;
  net::Bytes body;
};
inline constexpr std::uint32_t kNobody = 0xffffffff;

// Bodies of Relayed messages, each as large as a root takes.
std::vector<net::Bytes> encodePassed(const std::vector<Passed>& all);
bool decodePassed(net::ByteView bytes, std::vector<Passed>* all);

net::Bytes encode(const Member& member);
bool decode(net::ByteView bytes, Member* member);

net::Bytes encodeNumber(std::uint32_t number);
bool decodeNumber(net::ByteView bytes, std::uint32_t* number);

// Who a hub is, and where its root is ("host b, pid 4711").
struct HubName {
  PeerName who;
  std::string root;
};
net::Bytes encode(const HubName& hub);
bool decode(net::ByteView bytes, HubName* hub);

}  // namespace weft::bootstrap
