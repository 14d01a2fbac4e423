// SPDX-License-Identifier: Apache-2.0
#include "topology/host.h"

#include <array>
#include <cstdio>
#include <memory>

#include "base/log.h"
#include "base/no_fork.h"
#include "base/rank_list.h"
#include "topology/cores.h"
#include "topology/devices.h"
#include "topology/hwloc_library.h"

namespace weft::topology {
namespace {

// A loaded topology, with what is read of it.
class HwlocView {
 public:
  HwlocView(const HwlocLibrary& hwloc, HostDescription* host) : hwloc_(hwloc), host_(*host) {}
  ~HwlocView() {
    if (topology_ != nullptr) hwloc_.topologyDestroy(topology_);
  }
  HwlocView(const HwlocView&) = delete;
  HwlocView& operator=(const HwlocView&) = delete;

  bool load() {
    if (hwloc_.topologyInit(&topology_) != 0) {
      topology_ = nullptr;
      return false;
    }
    (void)hwloc_.topologySetIoTypesFilter(topology_, HWLOC_TYPE_FILTER_KEEP_ALL);
    return hwloc_.topologyLoad(topology_) == 0;
  }
  void read() { visit(hwloc_.getObjByDepth(topology_, 0, 0), nullptr); }

 private:
  // `cores` are those of the nearest object above that has any: I/O objects have none.
  void visit(hwloc_obj_t object, hwloc_const_cpuset_t cores) {
    if (object->cpuset != nullptr) cores = object->cpuset;
    if (object->type == HWLOC_OBJ_PACKAGE) ++host_.packages;
    if (object->type == HWLOC_OBJ_NUMANODE) addNuma(*object);
    if (object->type == HWLOC_OBJ_PCI_DEVICE) placeDevices(object->attr->pcidev, cores);
    for (hwloc_obj_t at : {object->memory_first_child, object->first_child, object->io_first_child})
      for (; at != nullptr; at = at->next_sibling) visit(at, cores);
  }

  void addNuma(const hwloc_obj& object) {
    NumaNode node;
    node.index = object.os_index;
    node.package = packageOf(object);
    node.memoryMiB = object.attr->numanode.local_memory >> 20;
    node.cores = setOf(object.cpuset);
    host_.numa.push_back(node);
  }

  static std::uint32_t packageOf(const hwloc_obj& object) {
    for (hwloc_obj_t at = object.parent; at != nullptr; at = at->parent)
      if (at->type == HWLOC_OBJ_PACKAGE) return at->logical_index;
    return 0;
  }

  void placeDevices(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci, hwloc_const_cpuset_t cores) {
    std::array<char, 32> busId;
    std::snprintf(busId.data(), busId.size(), "%04x:%02x:%02x.%01x", pci.domain, pci.bus, pci.dev,
                  pci.func);
    for (HostDevice& device : host_.devices)
      if (device.busId == busId.data()) device.near = setOf(cores);
  }

  cpu_set_t setOf(hwloc_const_cpuset_t from) const {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (from == nullptr) return set;
    for (int core = hwloc_.bitmapNext(from, -1); core >= 0 && core < CPU_SETSIZE;
         core = hwloc_.bitmapNext(from, core))
      CPU_SET(static_cast<std::size_t>(core), &set);
    return set;
  }

  const HwlocLibrary& hwloc_;
  HostDescription& host_;
  hwloc_topology_t topology_ = nullptr;
};

bool overlap(const cpu_set_t& a, const cpu_set_t& b) {
  cpu_set_t both;
  CPU_AND(&both, &a, &b);
  return CPU_COUNT(&both) != 0;
}

}  // namespace

HostDescription describeHost(const char* hwloc) {
  HostDescription host;
  host.name = hostName();
  host.devices = listDevices();
  const auto library = HwlocLibrary::open(hwloc, &host.missing);
  if (!library) {
    host.missing += "; NUMA nodes and the distance of devices are not known";
    return host;
  }
  HwlocView view(*library, &host);
  if (view.load())
    view.read();
  else
    host.missing = "hwloc cannot read this machine; fix: look at HWLOC_* in the environment";
  return host;
}

int distanceOf(const HostDescription& host, const HostDevice& device, const cpu_set_t& cores) {
  if (CPU_COUNT(&device.near) == 0 || overlap(device.near, cores)) return 0;
  for (const NumaNode& its : host.numa)
    for (const NumaNode& mine : host.numa)
      if (its.package == mine.package && overlap(its.cores, device.near) &&
          overlap(mine.cores, cores))
        return 1;
  return 2;
}

int distanceOf(const HostDescription& host, const std::string& busId, const cpu_set_t& cores) {
  for (const HostDevice& device : host.devices)
    if (device.busId == busId && CPU_COUNT(&device.near) != 0)
      return distanceOf(host, device, cores);
  return -1;
}

int distanceOf(const std::string& busId) {
  return distanceOf(processWide<const HostDescription>([] { return describeHost(); }), busId,
                    allowedCores());
}

std::string coreList(const cpu_set_t& cores) {
  std::vector<std::uint32_t> list;
  for (std::uint32_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores)) list.push_back(core);
  return rankRanges(list);
}

}  // namespace weft::topology
