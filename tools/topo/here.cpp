// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/here.h"

#include <dlfcn.h>

#include <algorithm>
#include <numeric>

#include "tools/topo/format.h"

namespace weft::topo {
namespace {

// It stays loaded: libfabric leaves memory behind when it is unloaded.
bool isThere(const std::string& file) {
  void* const handle = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (handle != nullptr) ::dlclose(handle);
  return handle != nullptr;
}

bool isOfRdmaDevice(const topology::HostDescription& host, const topology::HostDevice& device) {
  return device.kind == topology::HostDevice::Network && !device.busId.empty() &&
         std::ranges::any_of(host.devices, [&](const topology::HostDevice& other) {
           return other.kind == topology::HostDevice::Rdma && other.busId == device.busId;
         });
}

bool isRail(const topology::HostDescription& host, const topology::HostDevice& device) {
  return device.up && !isOfRdmaDevice(host, device);
}

}  // namespace

std::vector<Optional> optionalLibraries() {
  std::vector<Optional> libraries = {{"libibverbs.so.1", "RoCE and InfiniBand (transport verbs)"},
                                     {"libfabric.so.1", "EFA and TCP (transport ofi)"},
                                     {"libhwloc.so.15", "NUMA nodes and distances"}};
  for (Optional& library : libraries) library.here = isThere(library.file);
  return libraries;
}

topology::Fabric fabricOf(const topology::HostDescription& host, std::uint32_t ranks) {
  topology::Fabric fabric;
  fabric.name = host.name;
  fabric.nodes.push_back({host.name, ranks});
  std::vector<std::uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0u);
  for (const topology::HostDevice& device : host.devices) {
    if (isRail(host, device) && device.gbit > 0)
      fabric.rails.push_back({device.name, {device.gbit, 0}, all});
  }
  return fabric;
}

std::string exportOf(const topology::HostDescription& host, std::uint32_t ranks) {
  std::string lines = formatFabric(fabricOf(host, ranks));
  for (const topology::HostDevice& device : host.devices) {
    if (isRail(host, device) && device.gbit <= 0)
      lines += "# rail " + device.name + " gbit ? us ? ranks all    its rate is not known\n";
  }
  return lines;
}

}  // namespace weft::topo
