// SPDX-License-Identifier: Apache-2.0
#include "topology/devices.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/folder.h"

namespace weft::topology {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> entries(const fs::path& folder) {
  std::vector<std::string> names;
  (void)listFolder(folder, &names);
  std::ranges::sort(names);
  return names;
}

// "0000:00:06.0"
bool isBusId(const std::string& name) {
  return name.size() == 12 && name[4] == ':' && name[7] == ':' && name[10] == '.';
}

// Where the device is in the tree of /sys/devices, the nearest function of a PCI bus above it.
std::string busIdOf(const fs::path& device) {
  std::error_code error;
  fs::path at = fs::canonical(device, error);
  for (; !error && at.has_relative_path(); at = at.parent_path())
    if (isBusId(at.filename())) return at.filename();
  return {};
}

HostDevice networkAt(const fs::path& folder) {
  HostDevice device;
  device.name = folder.filename();
  device.busId = busIdOf(folder / "device");
  device.up = firstLine(folder / "operstate") == "up";
  double mbit = 0;  // -1 of a device that does not know
  if (std::istringstream(firstLine(folder / "speed")) >> mbit && mbit > 0)
    device.gbit = mbit / 1000;
  return device;
}

// All ports of a device. A port's "rate" reads "100 Gb/sec (4X EDR)", its state "4: ACTIVE".
HostDevice rdmaAt(const fs::path& folder) {
  HostDevice device;
  device.kind = HostDevice::Rdma;
  device.name = folder.filename();
  device.busId = busIdOf(folder / "device");
  for (const std::string& port : entries(folder / "ports")) {
    double gbit = 0;
    if (std::istringstream(firstLine(folder / "ports" / port / "rate")) >> gbit)
      device.gbit += gbit;
    device.up |= firstLine(folder / "ports" / port / "state").starts_with("4:");
  }
  return device;
}

}  // namespace

std::vector<HostDevice> listDevices(const std::string& sys) {
  std::vector<HostDevice> devices;
  const fs::path classes = fs::path(sys) / "class";
  for (const std::string& name : entries(classes / "net"))
    if (name != "lo" && name != "bonding_masters")
      devices.push_back(networkAt(classes / "net" / name));
  for (const std::string& name : entries(classes / "infiniband"))
    devices.push_back(rdmaAt(classes / "infiniband" / name));
  return devices;
}

}  // namespace weft::topology
