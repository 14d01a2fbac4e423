// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "topology/host.h"

namespace weft::topology {

// The network interfaces but loopback, and the RDMA devices, sorted by kind and name. `sys` is
// where /sys is. `near` stays empty.
std::vector<HostDevice> listDevices(const std::string& sys = "/sys");

}  // namespace weft::topology
