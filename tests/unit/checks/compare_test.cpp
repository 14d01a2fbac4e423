// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tools/checks/units.h"

namespace weft::checks {
namespace {

// Hosts of one fleet, as they differ on a good day.
std::vector<HostReport> fleet(std::size_t hosts, std::mt19937_64& random) {
  std::normal_distribution<double> bandwidth(180, 20);
  std::uniform_real_distribution<double> late(0, 0.3);
  std::vector<HostReport> reports;
  for (std::size_t i = 0; i < hosts; ++i) {
    HostReport report;
    report.host = "node" + std::to_string(i);
    report.add("memory.bandwidth", std::clamp(bandwidth(random), 110.0, 250.0), "GB/s");
    report.add("memory.left", bandwidth(random) * 1e9, "bytes");
    report.add("limits.memlock", kUnlimited, "bytes");
    report.add("limits.nofile", 1 << 20, "files");
    report.add("cores.usable", 48, "");
    report.add("clock.stamp", 1.7e9 + late(random), "s");
    report.add("nics.rdma", "4 x RDMA 100 Gbit/s MTU 9000");
    report.add("cpu.model", "Some CPU");
    report.add("kernel.release", "6.1.0");
    report.add("weft.version", "0.1.0");
    report.add("library.libfabric", "1.17");
    reports.push_back(report);
  }
  return reports;
}

void set(HostReport& report, const std::string& name, double value) {
  std::ranges::find(report.facts, name, &Fact::name)->value = value;
}
void set(HostReport& report, const std::string& name, const std::string& text) {
  std::ranges::find(report.facts, name, &Fact::name)->text = text;
}

TEST(CompareHosts, HealthyOnesGiveNoFinding) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    const auto found = compareHosts(fleet(1 + random() % 16, random));
    ASSERT_TRUE(found.empty()) << toText(found[0]);
  }
}

struct Planted {
  const char* kind;
  void (*plant)(HostReport& report);
  const char* words;
};
void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.kind; }

class CompareHostsWith : public ::testing::TestWithParam<Planted> {};

TEST_P(CompareHostsWith, OneOutlierNamesIt) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; ++round) {
    auto hosts = fleet(2 + random() % 15, random);
    const std::size_t bad = 1 + random() % (hosts.size() - 1);
    GetParam().plant(hosts[bad]);
    const auto found = compareHosts(hosts);
    ASSERT_EQ(found.size(), 1u) << hosts.size() << " hosts, bad: " << bad;
    EXPECT_EQ(found[0].kind, GetParam().kind);
    EXPECT_EQ(found[0].culprit, "host node" + std::to_string(bad));
    EXPECT_NE(found[0].what.find(GetParam().words), std::string::npos) << found[0].what;
    EXPECT_FALSE(found[0].fix.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CompareHostsWith,
    ::testing::Values(
        Planted{"memory-slow", [](HostReport& r) { set(r, "memory.bandwidth", 40); }, "40.0 GB/s"},
        Planted{"limits-lower", [](HostReport& r) { set(r, "limits.memlock", 65536); },
                "64 KiB of locked memory for each process, the others have unlimited"},
        Planted{"limits-lower", [](HostReport& r) { set(r, "limits.nofile", 1024); }, "1024 open"},
        Planted{"cores-fewer", [](HostReport& r) { set(r, "cores.usable", 24); }, "24 cores"},
        Planted{"clock-offset", [](HostReport& r) { set(r, "clock.stamp", 1.7e9 + 90); },
                "ahead of"},
        Planted{"nic-differs",
                [](HostReport& r) { set(r, "nics.rdma", "3 x RDMA 100 Gbit/s MTU 9000"); },
                "3 x RDMA 100 Gbit/s MTU 9000, the others 4 x"},
        Planted{"cpu-differs", [](HostReport& r) { set(r, "cpu.model", "Other"); }, "Other"},
        Planted{"version-differs", [](HostReport& r) { set(r, "weft.version", "0.0.9"); },
                "weft 0.0.9, the others 0.1.0"},
        Planted{"software-differs", [](HostReport& r) { set(r, "kernel.release", "5.4"); },
                "kernel 5.4"},
        Planted{"software-differs", [](HostReport& r) { set(r, "library.libfabric", "missing"); },
                "libfabric missing"}),
    [](const auto& each) {
      std::string name = each.param.kind + std::to_string(each.index);
      std::erase(name, '-');
      return name;
    });

TEST(CompareHosts, TheFirstMayBeTheSlowOne) {
  std::mt19937_64 random(3);
  auto hosts = fleet(3, random);
  set(hosts[0], "memory.bandwidth", 30);
  const auto found = compareHosts(hosts);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].culprit, "host node0");
}

TEST(CompareHosts, OneHostOrNoneIsNothingToCompare) {
  std::mt19937_64 random(4);
  EXPECT_TRUE(compareHosts({}).empty());
  EXPECT_TRUE(compareHosts(fleet(1, random)).empty());
}

}  // namespace
}  // namespace weft::checks
