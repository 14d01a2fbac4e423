// SPDX-License-Identifier: Apache-2.0
// Network interfaces and RDMA ports as the kernel shows them (/sys/class), and their counters.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/checks/host.h"

namespace weft::checks {

// A port of an RDMA device, or a network interface other than loopback.
struct Nic {
  std::string name;  // "eth0"; of an RDMA device with its port: "mlx5_0:1"
  bool rdma = false;
  bool hardware = false;  // it stands on a bus: not a bridge, a tunnel or a tap
  bool up = false;        // it may carry data now
  bool wanted = false;    // the administrator has switched it on
  double gbit = 0;        // 0: not known
  int mtu = 0;            // of an RDMA port that of its interface; 0: not known
  int gids = 0;           // of an RDMA port: entries of its GID table that are in use
  bool ethernet = false;  // RoCE, as opposed to InfiniBand or EFA
  std::string model;      // "0x15b3:0x101d", vendor and device; empty if not known
  std::map<std::string, std::uint64_t> counters;  // packets, and what should not happen
};
std::vector<Nic> readNics(const std::string& root = {});

// State, speed, MTU and GIDs, as facts and findings.
void checkNics(const std::vector<Nic>& nics, HostReport& report);

// What rose between two readings and should not have: errors, drops, links that went down.
std::vector<Finding> compareCounters(const std::string& host, const std::vector<Nic>& before,
                                     const std::vector<Nic>& after);

}  // namespace weft::checks
