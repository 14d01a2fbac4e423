// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weft::topology {

// A NUMA node: memory and the cores that are nearest to it.
struct NumaNode {
  std::uint32_t index = 0;  // the system's number
  std::uint32_t package = 0;
  std::uint64_t memoryMiB = 0;
  cpu_set_t cores{};
};

struct HostDevice {
  enum Kind : std::uint8_t { Network, Rdma } kind = Network;
  std::string name;   // "eth0", "mlx5_0"
  std::string busId;  // "0000:00:06.0"; empty if it is on no bus that is known
  double gbit = 0;    // 0: not known
  bool up = false;
  cpu_set_t near{};  // the cores that are nearest; empty if that is not known
};

struct HostDescription {
  std::string name;
  std::uint32_t packages = 0;  // 0: not known
  std::vector<NumaNode> numa;
  std::vector<HostDevice> devices;
  std::string missing;  // what could not be found out, why, and what to install; else empty
};

// Interfaces, RDMA devices and their speeds are the kernel's word (/sys); packages, NUMA nodes and
// what is near to what are hwloc's, which is opened at run time: without it they are not known.
HostDescription describeHost(const char* hwloc = "libhwloc.so.15");

// How far a device is from the cores that a rank may run on: 0 near, 1 on another NUMA node, 2 in
// another package. 0 if nobody knows.
int distanceOf(const HostDescription& host, const HostDevice& device, const cpu_set_t& cores);
// The same of the device on that bus; -1 if none is known there, or not where it is.
int distanceOf(const HostDescription& host, const std::string& busId, const cpu_set_t& cores);
// The same for this host and the cores of this process. The host is examined once.
int distanceOf(const std::string& busId);

// "0-3,8" of a set.
std::string coreList(const cpu_set_t& cores);

}  // namespace weft::topology
