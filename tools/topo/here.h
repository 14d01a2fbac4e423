// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/fabric.h"
#include "topology/host.h"

namespace weft::topo {

// A library that weft opens at run time, and what it is for.
struct Optional {
  std::string file;
  std::string purpose;
  bool here = false;
};
std::vector<Optional> optionalLibraries();

// The host as a fabric of one node: its ranks, and as rails the devices that are up and whose rate
// is known. An Ethernet interface of an RDMA device is the same rail, not another. Latencies are 0:
// they are not measured.
topology::Fabric fabricOf(const topology::HostDescription& host, std::uint32_t ranks);

// That fabric as a topology file, with a comment for each device that is up but whose rate nobody
// knows: they are for people to complete.
std::string exportOf(const topology::HostDescription& host, std::uint32_t ranks);

}  // namespace weft::topo
