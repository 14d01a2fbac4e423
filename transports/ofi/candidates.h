// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <string>
#include <vector>

#include "transports/ofi/library.h"
#include "transports/transport.h"
#include "transports/wire/device_filter.h"

namespace weft::ofi {

using namespace wire;

// One way out of this host that fi_getinfo offers: a NIC, or an address of an interface.
struct Candidate {
  std::shared_ptr<fi_info> info;
  std::string device;   // "eth0", "rdmap16s27"
  std::string subnet;   // libfabric's name of the fabric: "192.0.2.0/24", "efa"
  std::string address;  // of an IP interface
  bool ip = false;      // then only ranks of one subnet surely reach each other
  bool loopback = false;
  int distance = 0;  // 0: near this rank, or unknown; 1: on another NUMA node; 2: farther
};

using Distance = decltype(transport::TransportSetup::distanceOf);

// What `provider` offers and WEFT_NET_DEVICES allows, the nearest first, IPv4 before IPv6. Nothing
// is not an error here: `why` gets a word for each entry that was left out, or libfabric's reason.
std::vector<Candidate> listCandidates(const Library&, const std::string& provider,
                                      const DeviceFilter&, const Distance&, std::string* why);

// "10.0.0.1:4711"; empty if it is not an IP address.
std::string ipText(const void* address, std::size_t bytes);

}  // namespace weft::ofi
