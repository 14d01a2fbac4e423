// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/nics.h"

#include "tests/unit/checks/fake_tree.h"

namespace weft::checks {
namespace {

class Nics : public FakeTree {
 protected:
  // An interface and four RoCE ports of one model, all healthy.
  Nics() {
    write("/sys/class/net/lo/operstate", "unknown");
    write("/sys/class/net/docker0/operstate", "down");
    write("/sys/class/net/docker0/flags", "0x1003");
    interface("eth0", "up", "25000");
    for (int i = 0; i < 4; ++i)
      port("mlx5_" + std::to_string(i), "4: ACTIVE", "100 Gb/sec (4X EDR)");
  }

  void interface(const std::string& name, const char* state, const char* speed) const {
    const std::string folder = "/sys/class/net/" + name;
    write(folder + "/operstate", state);
    write(folder + "/flags", "0x1003");
    write(folder + "/speed", speed);
    write(folder + "/mtu", "9000");
    write(folder + "/device/vendor", "0x1d0f");
    write(folder + "/carrier_down_count", "1");
    counter(name, "rx_packets", 1000);
    counter(name, "rx_errors", 7);
    counter(name, "rx_dropped", 3);
  }
  void counter(const std::string& name, const std::string& what, int value) const {
    write("/sys/class/net/" + name + "/statistics/" + what, std::to_string(value));
  }
  void port(const std::string& name, const char* state, const char* rate) const {
    const std::string folder = "/sys/class/infiniband/" + name;
    write(folder + "/device/vendor", "0x15b3");
    write(folder + "/device/device", "0x101d");
    write(folder + "/ports/1/state", state);
    write(folder + "/ports/1/rate", rate);
    write(folder + "/ports/1/link_layer", "Ethernet");
    write(folder + "/ports/1/gid_attrs/ndevs/0", "eth0");
    write(folder + "/ports/1/gids/0", "fe80:0000:0000:0000:0202:c9ff:fe00:0001");
    write(folder + "/ports/1/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000");
    write(folder + "/ports/1/counters/link_downed", "0");
    write(folder + "/ports/1/counters/symbol_error", "0");
  }
  std::vector<Finding> findings() const {
    HostReport report;
    report.host = "b";
    checkNics(readNics(root()), report);
    return report.findings;
  }
};

TEST_F(Nics, AreRead) {
  const std::vector<Nic> nics = readNics(root());
  ASSERT_EQ(nics.size(), 6u);  // without lo
  EXPECT_FALSE(nics[0].hardware);
  EXPECT_EQ(nics[1].name, "eth0");
  EXPECT_EQ(nics[1].gbit, 25);
  EXPECT_TRUE(nics[1].up);
  EXPECT_EQ(nics[1].counters.at("rx_errors"), 7u);
  EXPECT_EQ(nics[2].name, "mlx5_0:1");
  EXPECT_EQ(nics[2].gbit, 100);
  EXPECT_EQ(nics[2].gids, 1);
  EXPECT_EQ(nics[2].mtu, 9000);
  EXPECT_TRUE(nics[2].ethernet);
}

TEST_F(Nics, ThatAreHealthyAreNoFinding) { EXPECT_TRUE(findings().empty()); }

TEST_F(Nics, AnInterfaceWithoutALinkIsANote) {
  interface("eth1", "down", "-1");
  const auto found = findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "nic-no-carrier");
  EXPECT_EQ(found[0].severity, Severity::Note);
  EXPECT_EQ(found[0].culprit, "NIC eth1 on host b");
}

TEST_F(Nics, APortThatIsSlowerThanItsSiblingsIsFound) {
  port("mlx5_2", "4: ACTIVE", "25 Gb/sec (1X EDR)");
  const auto found = findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "rdma-slow");
  EXPECT_EQ(found[0].culprit, "NIC mlx5_2:1 on host b");
  EXPECT_NE(found[0].what.find("25 Gbit/s"), std::string::npos) << found[0].what;
}

TEST_F(Nics, APortWithoutAnAddressIsFound) {
  write("/sys/class/infiniband/mlx5_1/ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000");
  const auto found = findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "rdma-no-gid");
}

TEST_F(Nics, PortsThatAreAllDownAreFound) {
  for (int i = 0; i < 4; ++i) port("mlx5_" + std::to_string(i), "1: DOWN", "10 Gb/sec (4X SDR)");
  const auto found = findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "rdma-down");
}

TEST_F(Nics, CountersThatStandStillAreNoFinding) {
  const auto before = readNics(root());
  counter("eth0", "rx_packets", 900000);
  counter("eth0", "rx_dropped", 20);  // frames of protocols that nobody speaks
  EXPECT_TRUE(compareCounters("b", before, readNics(root())).empty());
}

TEST_F(Nics, CountersThatRiseAreFound) {
  const auto before = readNics(root());
  counter("eth0", "rx_packets", 2000);
  counter("eth0", "rx_errors", 57);
  write("/sys/class/net/eth0/carrier_down_count", "2");
  write("/sys/class/infiniband/mlx5_3/ports/1/counters/symbol_error", "12");
  const auto found = compareCounters("b", before, readNics(root()));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].kind, "nic-errors");
  EXPECT_EQ(found[0].what, "rx_errors rose by 50 among 1000 packets");
  EXPECT_EQ(found[1].kind, "nic-flapped");
  EXPECT_EQ(found[2].culprit, "NIC mlx5_3:1 on host b");
}

TEST_F(Nics, CountersThatBeginAnewAreNoFinding) {
  const auto before = readNics(root());
  counter("eth0", "rx_errors", 1);
  EXPECT_TRUE(compareCounters("b", before, readNics(root())).empty());
}

}  // namespace
}  // namespace weft::checks
