// SPDX-License-Identifier: Apache-2.0
#include "topology/host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "topology/cores.h"
#include "topology/devices.h"

namespace weft::topology {
namespace {

namespace fs = std::filesystem;

cpu_set_t coresOf(std::initializer_list<std::size_t> list) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::size_t core : list) CPU_SET(core, &set);
  return set;
}

// hwloc reads a made-up machine where this variable says so.
struct Synthetic {
  explicit Synthetic(const char* machine) { ::setenv("HWLOC_SYNTHETIC", machine, 1); }
  ~Synthetic() { ::unsetenv("HWLOC_SYNTHETIC"); }
};

TEST(Host, FindsPackagesAndNumaNodes) {
  const Synthetic machine("package:2 [numa(memory=1GiB)] core:4 pu:1");
  const HostDescription host = describeHost();
  EXPECT_EQ(host.missing, "");
  EXPECT_EQ(host.packages, 2u);
  ASSERT_EQ(host.numa.size(), 2u);
  EXPECT_EQ(coreList(host.numa[0].cores), "0-3");
  EXPECT_EQ(coreList(host.numa[1].cores), "4-7");
  EXPECT_EQ(host.numa[1].package, 1u);
  EXPECT_EQ(host.numa[0].memoryMiB, 1024u);
}

TEST(Host, ThisMachineHasCores) {
  const HostDescription host = describeHost();
  EXPECT_FALSE(host.name.empty());
  ASSERT_FALSE(host.numa.empty());
  const cpu_set_t mine = allowedCores();
  const bool near = std::ranges::any_of(host.numa, [&](const NumaNode& node) {
    cpu_set_t both;
    CPU_AND(&both, &node.cores, &mine);
    return CPU_COUNT(&both) != 0;
  });
  EXPECT_TRUE(near);
  for (const HostDevice& device : host.devices) EXPECT_LE(distanceOf(host, device, mine), 2);
}

TEST(Host, WithoutHwlocItSaysWhatIsMissing) {
  const HostDescription host = describeHost("libhwloc-is-not-here.so.15");
  EXPECT_NE(host.missing.find("hwloc is missing"), std::string::npos) << host.missing;
  EXPECT_NE(host.missing.find("fix: install libhwloc15"), std::string::npos) << host.missing;
  EXPECT_TRUE(host.numa.empty());
  EXPECT_EQ(host.devices.size(), listDevices().size()) << "the kernel still tells";
}

TEST(Host, AnotherLibraryIsRefused) {
  const HostDescription host = describeHost("libm.so.6");
  EXPECT_NE(host.missing.find("too old or another library"), std::string::npos) << host.missing;
}

TEST(Host, DistanceCountsNodesAndPackages) {
  const Synthetic machine("package:2 [numa] group:2 [numa] core:2 pu:1");
  HostDescription host = describeHost();
  HostDevice device;
  device.near = coresOf({0, 1});
  EXPECT_EQ(distanceOf(host, device, coresOf({1, 7})), 0);
  EXPECT_EQ(distanceOf(host, device, coresOf({2, 3})), 1);
  EXPECT_EQ(distanceOf(host, device, coresOf({4, 5})), 2);
  EXPECT_EQ(distanceOf(host, HostDevice(), coresOf({4})), 0) << "nobody knows";
  device.busId = "0000:00:06.0";
  host.devices = {device, HostDevice()};
  host.devices[1].busId = "0000:00:07.0";
  EXPECT_EQ(distanceOf(host, "0000:00:06.0", coresOf({4, 5})), 2);
  EXPECT_EQ(distanceOf(host, "0000:00:06.0", coresOf({1})), 0);
  EXPECT_EQ(distanceOf(host, "0000:00:07.0", coresOf({1})), -1) << "hwloc does not say";
  EXPECT_EQ(distanceOf(host, "0000:00:08.0", coresOf({1})), -1) << "nothing is there";
}

// A /sys with one NIC on a PCI bus, one interface without a device, and an RDMA device.
class FakeSys {
 public:
  FakeSys() : root_(fs::path(::testing::TempDir()) / text("weft_sys_", ::getpid())) {
    const fs::path pci = root_ / "devices/pci0000:00/0000:00:06.0";
    write(pci / "net/eth7/operstate", "up");
    write(pci / "net/eth7/speed", "25000");
    write(root_ / "devices/virtual/net/veth1/operstate", "down");
    write(root_ / "devices/virtual/net/veth1/speed", "-1");
    write(root_ / "devices/virtual/net/lo/operstate", "unknown");
    write(pci / "infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)");
    write(pci / "infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
    write(pci / "infiniband/mlx5_0/ports/2/rate", "100 Gb/sec (4X EDR)");
    write(pci / "infiniband/mlx5_0/ports/2/state", "1: DOWN");
    link(pci, pci / "net/eth7/device");
    link(pci, pci / "infiniband/mlx5_0/device");
    link(pci / "net/eth7", root_ / "class/net/eth7");
    link(root_ / "devices/virtual/net/veth1", root_ / "class/net/veth1");
    link(root_ / "devices/virtual/net/lo", root_ / "class/net/lo");
    link(pci / "infiniband/mlx5_0", root_ / "class/infiniband/mlx5_0");
  }
  ~FakeSys() { fs::remove_all(root_); }
  std::string path() const { return root_; }

 private:
  static void write(const fs::path& file, const std::string& line) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << line << "\n";
  }
  static void link(const fs::path& to, const fs::path& at) {
    fs::create_directories(at.parent_path());
    fs::create_symlink(to, at);
  }
  fs::path root_;
};

TEST(Devices, AreReadFromSys) {
  const FakeSys sys;
  const std::vector<HostDevice> devices = listDevices(sys.path());
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0].name, "eth7");
  EXPECT_EQ(devices[0].busId, "0000:00:06.0");
  EXPECT_EQ(devices[0].gbit, 25);
  EXPECT_TRUE(devices[0].up);
  EXPECT_EQ(devices[1].name, "veth1");
  EXPECT_EQ(devices[1].busId, "");
  EXPECT_EQ(devices[1].gbit, 0);
  EXPECT_FALSE(devices[1].up);
  EXPECT_EQ(devices[2].kind, HostDevice::Rdma);
  EXPECT_EQ(devices[2].name, "mlx5_0");
  EXPECT_EQ(devices[2].gbit, 200);
  EXPECT_TRUE(devices[2].up);
}

TEST(Devices, NoSysIsNoDevice) { EXPECT_TRUE(listDevices("/nowhere").empty()); }

TEST(Cores, ListsNameRuns) {
  EXPECT_EQ(coreList(coresOf({0, 1, 2, 5})), "0-2,5");
  EXPECT_EQ(coreList(coresOf({})), "");
}

}  // namespace
}  // namespace weft::topology
