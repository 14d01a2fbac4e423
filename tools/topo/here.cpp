// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/here.h"

#include <dlfcn.h>

#include <algorithm>
#include <numeric>

namespace weft::topo {
namespace {

// It stays loaded: libfabric leaves memory behind when it is unloaded.
bool isThere(const std::string& file) {
  void* const handle = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (handle != nullptr) ::dlclose(handle);
  return handle != nullptr;
}

bool isOfRdmaDevice(const HostDescription& host, const HostDevice& device) {
  return device.kind == HostDevice::Network && !device.busId.empty() &&
         std::ranges::any_of(host.devices, [&](const HostDevice& other) {
           return other.kind == HostDevice::Rdma && other.busId == device.busId;
         });
}

}  // namespace

std::vector<Optional> optionalLibraries() {
  std::vector<Optional> libraries = {{"libibverbs.so.1", "RoCE and InfiniBand (transport verbs)"},
                                     {"libfabric.so.1", "EFA and TCP (transport ofi)"},
                                     {"libhwloc.so.15", "NUMA nodes and distances"}};
  for (Optional& library : libraries) library.here = isThere(library.file);
  return libraries;
}

Fabric fabricOf(const HostDescription& host, std::uint32_t ranks) {
  Fabric fabric;
  fabric.name = host.name;
  fabric.nodes.push_back({host.name, ranks});
  std::vector<std::uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0u);
  for (const HostDevice& device : host.devices) {
    if (device.up && device.gbit > 0 && !isOfRdmaDevice(host, device))
      fabric.rails.push_back({device.name, {device.gbit, 0}, all});
  }
  return fabric;
}

}  // namespace weft::topo
